#include "agent/readiness.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "agent/fake_clock.hpp"
#include "agent/fakes.hpp"
#include "core/event.hpp"
#include "fixture/node.hpp"
#include "fixture/pods.hpp"

namespace evictd::agent::readiness_test {
namespace {

using namespace std::chrono_literals;
using fixture::pod;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

/// Remembers for whom it was made ready last.
class FakePreparation final : public evict::StrikePreparation {
 public:
  explicit FakePreparation(Steps& steps) : steps_{steps} {}

  void prepare(std::span<const pods::RuntimePodPtr> pods, core::Instant) override {
    std::string line = "prepare:";
    for (const auto& pod : pods) line += " " + pod->pod->uid;
    steps_.push_back(std::move(line));
  }
  void rehearse(const pods::RuntimePod& pod) override { steps_.push_back("rehearse " + pod.pod->uid); }

 private:
  Steps& steps_;
};

struct Node {
  explicit Node(core::Signal signal = core::Signal::MemoryAvailable)
      : policy{core::EvictionPolicy{.thresholds = {fixture::threshold(signal, "1Gi")}}} {}

  /// Lists these pods; each runs.
  Steps list(const core::PodList& pods) {
    running.pods.clear();
    for (const auto& pod : pods) running.pods[pod->uid] = runtime_pod(*pod);
    std::ignore = policy.tell(core::PodsChanged{std::make_shared<core::PodList>(pods)}, clock.now());
    steps.clear();
    readiness.pods_changed(pods);
    return steps;
  }
  Steps approach() {
    steps.clear();
    readiness.approaches();
    return steps;
  }

  Steps steps;
  boost::asio::io_context reactor{1};
  FakeClock clock{reactor};
  FakeUsage usage{steps, reactor};
  FakePods running;
  FakePreparation strike{steps};
  FakeLog log{steps};
  FakeSaver state{steps};
  core::Synchronizer policy;
  Readiness readiness{{.policy = policy,
                       .usage = usage,
                       .pods = running,
                       .strike = strike,
                       .log = log,
                       .state = state,
                       .clock = clock}};
};

}  // namespace

TEST_CASE("with each list strikes are prepared at the pods that would go first, and no pod is read for that") {
  Node node;
  node.usage.working_sets = {{"small", 1_MiB}, {"large", 1_GiB}, {"critical", 2_GiB}};
  const auto list = fixture::pods(
      {pod("small"), fixture::with_priority(pod("critical"), core::system_critical_priority), pod("large")});
  node.list(list);
  CHECK(node.list(list) == Steps{"prepare: large small"});
  CHECK(node.list({}) == Steps{"prepare:"});
}

TEST_CASE("what is told and saved of a kill is rehearsed as soon as there is a pod that may go, and once") {
  Node node;
  CHECK(node.list(fixture::pods({fixture::with_priority(pod("critical"), core::system_critical_priority)})) ==
        Steps{"prepare:"});
  const auto list = fixture::pods({pod("a")});
  CHECK(node.list(list) == Steps{"prepare: a", "rehearse telling of a", "rehearse saving of a"});
  CHECK(node.list(list) == Steps{"prepare: a"});
}

TEST_CASE("those that would go first are looked at for the black box, and nobody where no memory threshold acts") {
  struct InlineWorker final : async::Worker {
    void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
      work();
      done();
    }
  };
  struct Reader final : node::SnapshotReader {
    std::optional<node::PodMemorySnapshot> read(std::span<const std::string> cgroups, std::size_t&) const override {
      reads.push_back(cgroups.front());
      return std::nullopt;
    }
    mutable Steps reads;
  };
  const auto looked_at = [](Node& node) {
    const auto reader = std::make_shared<Reader>();
    BlackBox box{node.reactor.get_executor(), std::make_unique<InlineWorker>(), reader};
    Readiness readiness{{.policy = node.policy,
                         .usage = node.usage,
                         .pods = node.running,
                         .strike = node.strike,
                         .log = node.log,
                         .state = node.state,
                         .clock = node.clock,
                         .black_box = &box}};
    node.usage.working_sets = {{"small", 1_MiB}, {"large", 1_GiB}};
    node.list(fixture::pods({pod("small"), pod("large")}));
    readiness.approaches();
    readiness.pods_changed({});  // within the same second
    return reader->reads;
  };
  Node node;
  CHECK(looked_at(node) == Steps{"/kubepods/podlarge", "/kubepods/podsmall"});
  Node of_disks{core::Signal::NodefsAvailable};
  CHECK(looked_at(of_disks).empty());
}

TEST_CASE("of many pods only the likeliest are prepared for, and none that left the node") {
  Node node;
  core::PodList pods;
  for (char name = 'a'; name <= 'z'; ++name) {
    pods.push_back(std::make_shared<const core::Pod>(pod({name})));
    node.usage.working_sets[{name}] = (100 + ('z' - name)) * 1_MiB;
  }
  node.list(pods);
  CHECK(node.list(pods) == Steps{"prepare: a b c d e f g h"});
  node.running.pods.erase("b");
  node.steps.clear();
  node.readiness.pods_changed(pods);
  CHECK(node.steps == Steps{"prepare: a c d e f g h i"});
}

TEST_CASE("near a threshold the pods are looked at once a second, and once in ten a strike is rehearsed") {
  Node node;
  node.usage.working_sets = {{"small", 1_MiB}, {"large", 1_GiB}};
  node.list(fixture::pods({pod("small"), pod("large")}));
  const Steps rehearses{
      "look at pods",  "read pods", "prepare: large small", "rehearse telling of large", "rehearse saving of large",
      "rehearse large"};
  CHECK(node.approach() == rehearses);
  CHECK(node.approach().empty());
  node.clock.advance(1s);
  node.usage.working_sets["small"] = 2_GiB;  // it has passed the other one
  CHECK(node.approach() == Steps{"look at pods", "prepare: small large"});
  node.clock.advance(8s);
  CHECK(node.approach() == Steps{"look at pods", "prepare: small large"});
  node.clock.advance(1s);
  CHECK(node.approach() == Steps{"look at pods", "read pods", "prepare: small large", "rehearse telling of small",
                                 "rehearse saving of small", "rehearse small"});
}

TEST_CASE("near a threshold with no pod that may go there is nothing to rehearse") {
  Node node;
  node.list({});
  CHECK(node.approach() == Steps{"look at pods", "read pods", "prepare:"});
}

TEST_CASE("where no threshold is about memory nothing is prepared, and what was prepared is given back") {
  Node node{core::Signal::PidAvailable};
  CHECK(node.list(fixture::pods({pod("a")})) == Steps{"prepare:"});
  CHECK(node.approach().empty());
}

}  // namespace evictd::agent::readiness_test
