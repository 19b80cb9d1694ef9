#include "agent/trimmer.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/describe_trim.hpp"
#include "agent/fake_clock.hpp"
#include "agent/fakes.hpp"
#include "async/worker.hpp"
#include "core/event.hpp"
#include "fixture/node.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/pods.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "node/cgroup.hpp"
#include "wake/wakes.hpp"

namespace evictd::agent::trimmer_test {
namespace {

using namespace std::chrono_literals;
using core::Signal;
using fixture::container;
using fixture::dir;
using fixture::file;
using fixture::observed;
using fixture::pod;
using fixture::value_of;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

/// Does its work when the test says so.
class HeldWorker final : public async::Worker {
 public:
  void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
    held.emplace_back(std::move(work), std::move(done));
  }
  void go_on() {
    for (auto& [work, done] : std::exchange(held, {})) {
      work();
      done();
    }
  }

  std::vector<std::pair<std::move_only_function<void()>, std::move_only_function<void()>>> held;
};

/// Each pod holds 500 MiB of active file cache in a cgroup of its own.
std::vector<fixture::Entry> cached() {
  return {file("memory.current", "524288000\n"), file("memory.stat", "inactive_file 0\nactive_file 524288000\n"),
          file("memory.reclaim", "")};
}

/// The kernel that takes cache, on the worker's thread: each pod's in a tenth of a second.
struct Kernel final : evict::TrimTools {
  explicit Kernel(fixture::Tree& tree) : tree{tree} {}
  [[nodiscard]] core::Instant now() const override { return time; }
  int write(int descriptor, std::string_view, core::Duration) override {
    time += 100ms;
    const auto path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", descriptor));
    const auto name = path.parent_path().filename().native();
    asked.push_back(name);
    if (!gives) return EAGAIN;
    tree.write("cgroup/kubepods/" + name + "/memory.current", "0\n");
    tree.write("cgroup/kubepods/" + name + "/memory.stat", "inactive_file 0\nactive_file 0\n");
    return 0;
  }

  fixture::Tree& tree;
  core::Instant time;
  std::vector<std::string> asked;  // whose cache was asked for, in their order
  bool gives = true;
};

struct Node final : TrimmedNode {
  explicit Node(std::vector<core::Threshold> thresholds)
      : tree{fixture::v2_node({}, 0, {dir("kubepods", {dir("poda", cached()), dir("podb", cached())})})},
        policy{core::EvictionPolicy{.thresholds = std::move(thresholds)}} {
    const auto list = fixture::pods({pod("a"), pod("b"), pod("within", {container("main", {{"memory", "2Gi"}})}),
                                     fixture::with_priority(pod("critical"), core::system_critical_priority)});
    for (const auto& each : list) running.pods[each->uid] = runtime_pod(*each);
    usage.working_sets = {{"a", 500_MiB}, {"b", 600_MiB}, {"within", 1_GiB}, {"critical", 1_GiB}};
    std::ignore = policy.tell(core::PodsChanged{std::make_shared<core::PodList>(list)}, clock.now());
  }

  /// A pass that sees so much available.
  void pass(std::int64_t available) {
    seen = observed({{Signal::MemoryAvailable, available, 8_GiB}});
    auto under_way = policy.begin(seen);
    core::Answer answer;
    while (const auto action = under_way.resume(answer, clock.now())) answer = {};
    trimmer.passed(seen);
  }

  [[nodiscard]] bool acts() const override { return carries_out; }
  [[nodiscard]] bool evicts() const override { return is_evicting; }
  core::Observations look() override { return seen; }
  std::size_t tell_programs() override { return told += programs, programs; }

  Steps steps;
  boost::asio::io_context reactor{1};
  FakeClock clock{reactor};
  FakeUsage usage{steps, reactor};
  FakePods running;
  fixture::Tree tree;
  node::CgroupHierarchy hierarchy = value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  wake::Wakes wakes{reactor.get_executor()};
  HeldWorker worker;
  core::Synchronizer policy;
  core::Observations seen;
  FakeLog log{steps};
  bool carries_out = true;
  bool is_evicting = false;
  std::size_t programs = 0;
  std::size_t told = 0;
  std::shared_ptr<Kernel> kernel = std::make_shared<Kernel>(tree);

  Trimmer trimmer{{.reactor = reactor.get_executor(),
                   .policy = policy,
                   .usage = usage,
                   .pods = running,
                   .hierarchy = hierarchy,
                   .clock = clock,
                   .wakes = wakes,
                   .worker = worker,
                   .node = *this,
                   .log = log,
                   .proc = "/nowhere",
                   .limits = {},
                   .tools = kernel}};
};

std::vector<core::Threshold> soft() { return {fixture::threshold(Signal::MemoryAvailable, "1Gi", 90s)}; }
std::vector<core::Threshold> hard() { return {fixture::threshold(Signal::MemoryAvailable, "1Gi")}; }

}  // namespace

TEST_CASE("while a soft threshold's grace period runs, the pods over their request are trimmed in ranking order") {
  Node node{soft()};
  node.pass(2_GiB);
  CHECK(node.worker.held.empty());
  node.pass(200_MiB);
  CHECK(node.worker.held.size() == 1);
  node.pass(200_MiB);  // one at a time
  CHECK(node.worker.held.size() == 1);
  node.seen = observed({{Signal::MemoryAvailable, 1'200_MiB, 8_GiB}});
  node.worker.go_on();
  CHECK(node.kernel->asked == std::vector<std::string>{"podb", "poda"});
  REQUIRE(node.log.trims.size() == 1);
  CHECK(node.log.trims[0].result.bytes == 1'000_MiB);
  CHECK_FALSE(node.log.trims[0].still_short);
  const auto event = describe_trim(node.log.trims[0]);
  CHECK(event.kind() == v1::Event::TRIMMED);
  CHECK(event.message() == "trimmed 1000.0 MiB from 2 pods in 0.2 s, nobody evicted");
  CHECK(event.trimmed().pods_size() == 2);
  CHECK(event.trimmed().ended_by() == "enough");
}

TEST_CASE("once pods go for a threshold nothing is begun, and what is under way is stopped") {
  Node node{soft()};
  node.pass(200_MiB);
  REQUIRE(node.worker.held.size() == 1);
  node.clock.advance(90s);
  node.pass(200_MiB);
  node.worker.go_on();
  CHECK(node.kernel->asked.empty());
  CHECK(node.log.trims.empty());
  node.clock.advance(10min);
  node.pass(200_MiB);
  CHECK(node.worker.held.empty());

  Node crossed{hard()};
  crossed.pass(200_MiB);
  crossed.seen = observed({{Signal::MemoryAvailable, 200_MiB, 8_GiB}});
  crossed.trimmer.approaches();
  CHECK(crossed.worker.held.empty());
}

TEST_CASE("a trim that is overtaken by an eviction does not say that nobody was evicted") {
  Node node{soft()};
  node.programs = 1;
  node.pass(200_MiB);
  node.is_evicting = true;
  node.seen = observed({{Signal::MemoryAvailable, 2_GiB, 8_GiB}});
  node.worker.go_on();
  REQUIRE(node.log.trims.size() == 1);
  CHECK(describe_trim(node.log.trims[0]).message() ==
        "trimmed 1000.0 MiB from 2 pods in 0.2 s, told 1 program that memory is short, and pods go all the same");
}

TEST_CASE("a trim that took what was wanted is told of once the kernel's counts of the node have caught up") {
  Node node{soft()};
  node.pass(200_MiB);
  node.clock.advance(88s);
  node.worker.go_on();  // the node's counts are as they were
  CHECK(node.log.trims.empty());
  node.clock.advance(1s);
  CHECK(node.log.trims.empty());

  SUBCASE("nothing is short any more") {
    node.seen = observed({{Signal::MemoryAvailable, 1'200_MiB, 8_GiB}});
    node.clock.advance(Trimmer::counts_lag);
    REQUIRE(node.log.trims.size() == 1);
    CHECK(describe_trim(node.log.trims[0]).message() == "trimmed 1000.0 MiB from 2 pods in 0.2 s, nobody evicted");
  }
  SUBCASE("they say the same then") {
    node.clock.advance(Trimmer::counts_lag);
    REQUIRE(node.log.trims.size() == 1);
    CHECK(node.log.trims[0].still_short);
  }
  SUBCASE("pods go meanwhile") {
    node.clock.advance(1s);
    node.pass(200_MiB);
    REQUIRE(node.log.trims.size() == 1);
    CHECK(describe_trim(node.log.trims[0]).message().ends_with("and pods go all the same"));
  }
  SUBCASE("evictd ends meanwhile") {
    node.trimmer.stop();
    REQUIRE(node.log.trims.size() == 1);
    CHECK(describe_trim(node.log.trims[0]).message().ends_with("still short: memory.available<1Gi for 1m30s"));
  }
  node.clock.advance(Trimmer::counts_lag);
  CHECK(node.log.trims.size() == 1);
}

TEST_CASE("a trim that ends while decisions are only reported says that no pod goes") {
  Node node{soft()};
  node.programs = 1;
  node.pass(200_MiB);
  node.carries_out = false;  // it is not known any more what the kubelet goes by
  SUBCASE("by itself") {}
  SUBCASE("as a pod's time comes") {
    node.clock.advance(90s);
    node.pass(200_MiB);
  }
  node.worker.go_on();
  node.clock.advance(Trimmer::counts_lag);
  REQUIRE(node.log.trims.size() == 1);
  CHECK(describe_trim(node.log.trims[0])
            .message()
            .ends_with("told 1 program that memory is short, still short: memory.available<1Gi for 1m30s"));
}

TEST_CASE("near a hard threshold, and not far from it, pods are trimmed") {
  Node node{hard()};
  node.seen = observed({{Signal::MemoryAvailable, 3_GiB, 8_GiB}});
  node.trimmer.approaches();
  CHECK(node.worker.held.empty());
  node.seen = observed({{Signal::MemoryAvailable, 1'500_MiB, 8_GiB}});
  node.trimmer.approaches();  // in the same moment
  CHECK(node.worker.held.empty());
  node.clock.advance(20ms);
  node.trimmer.approaches();
  CHECK(node.worker.held.size() == 1);
  node.worker.go_on();
  CHECK(node.kernel->asked == std::vector<std::string>{"podb", "poda"});
}

TEST_CASE("after a trim there is none for ten seconds, and for a minute after one that gained nothing") {
  Node node{soft()};
  node.kernel->gives = false;
  node.pass(200_MiB);
  node.worker.go_on();
  CHECK(node.log.trims.empty());
  node.clock.advance(59s);
  node.pass(200_MiB);
  CHECK(node.worker.held.empty());
  node.kernel->gives = true;
  node.clock.advance(1s);
  node.pass(200_MiB);
  REQUIRE(node.worker.held.size() == 1);
  node.seen = observed({{Signal::MemoryAvailable, 1'200_MiB, 8_GiB}});
  node.worker.go_on();
  CHECK(node.log.trims.size() == 1);
  node.clock.advance(10s);
  node.pass(200_MiB);
  CHECK(node.worker.held.size() == 1);
}

TEST_CASE(
    "where nobody is over a request yet, as before the first list of pods, there is another look a second later") {
  Node node{soft()};
  const auto held = std::exchange(node.usage.working_sets, {});
  node.pass(200_MiB);
  CHECK(node.worker.held.empty());
  node.usage.working_sets = held;
  node.pass(200_MiB);
  CHECK(node.worker.held.empty());
  node.clock.advance(1s);
  node.pass(200_MiB);
  CHECK(node.worker.held.size() == 1);
}

TEST_CASE("programs are told whether or not there is cache to be taken, and that is an event") {
  Node node{soft()};
  node.programs = 3;
  node.usage.working_sets = {};  // nobody is over a request
  node.pass(200_MiB);
  CHECK(node.told == 3);
  CHECK(node.worker.held.empty());
  REQUIRE(node.log.trims.size() == 1);
  CHECK(describe_trim(node.log.trims[0]).message() ==
        "told 3 programs that memory is short, still short: memory.available<1Gi for 1m30s");
}

TEST_CASE("where decisions are not carried out, or an eviction is under way, nobody is trimmed; nor after the end") {
  Node node{soft()};
  node.carries_out = false;
  node.pass(200_MiB);
  CHECK(node.worker.held.empty());
  node.carries_out = true;
  node.is_evicting = true;
  node.pass(200_MiB);
  CHECK(node.worker.held.empty());
  node.is_evicting = false;
  node.trimmer.stop();
  node.pass(200_MiB);
  CHECK(node.worker.held.empty());
}

}  // namespace evictd::agent::trimmer_test
