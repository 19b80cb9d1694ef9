#include "agent/black_box.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/fakes.hpp"
#include "fixture/pods.hpp"

namespace evictd::agent::black_box_test {
namespace {

using namespace std::chrono_literals;

/// Reads when it is told.
struct HeldWorker final : async::Worker {
  using Task = std::move_only_function<void()>;
  explicit HeldWorker(std::deque<std::pair<Task, Task>>& given) : jobs{given} {}
  void run(Task work, Task done) override { jobs.emplace_back(std::move(work), std::move(done)); }
  std::deque<std::pair<Task, Task>>& jobs;
};

core::Instant at(core::Duration time) { return core::Instant{1h + time}; }

/// Pods of which the test says what they hold.
struct FakeReader final : node::SnapshotReader {
  std::optional<node::PodMemorySnapshot> read(std::span<const std::string> cgroups, std::size_t&) const override {
    reads.push_back(cgroups.front());
    if (is_gone) return std::nullopt;
    node::PodMemorySnapshot snapshot{.time = now, .usage = usage};
    if (resident > 0) snapshot.processes.push_back({"web", resident, resident, 0});
    return snapshot;
  }

  core::Instant now = at(0s);
  std::int64_t usage = 100;
  std::int64_t resident = 50;
  bool is_gone = false;
  mutable Steps reads;
};

struct Box {
  explicit Box(bool has_thread = true)
      : box{reactor.get_executor(), has_thread ? std::make_unique<HeldWorker>(jobs) : nullptr, reader} {}

  void look(const std::vector<std::string>& names) {
    std::vector<pods::RuntimePodPtr> pods;
    for (const auto& name : names) pods.push_back(runtime_pod(fixture::pod(name)));
    box.look(pods, reader->now);
  }
  void kill(const std::string& name) {
    box.killed(*runtime_pod(fixture::pod(name)), reader->now,
               [this](const BlackBox::Found& found) { told.push_back(found); });
  }
  /// Does all that the thread was given.
  void work() {
    while (!jobs.empty()) {
      auto [work, done] = std::move(jobs.front());
      jobs.pop_front();
      work();
      done();
    }
  }
  void settle() {
    reactor.restart();
    reactor.poll();
  }

  boost::asio::io_context reactor{1};
  std::deque<std::pair<HeldWorker::Task, HeldWorker::Task>> jobs;
  std::shared_ptr<FakeReader> reader = std::make_shared<FakeReader>();
  std::vector<BlackBox::Found> told;
  BlackBox box;
};

}  // namespace

TEST_CASE("the freshest snapshot from before the kill is told, in a later turn, and nothing is read for it") {
  Box box;
  box.look({"a", "b"});
  box.work();
  box.reader->now = at(1s);
  box.reader->usage = 300;
  box.look({"a", "b"});
  box.work();
  box.reader->reads.clear();
  box.reader->now = at(2s);
  box.kill("a");
  CHECK(box.told.empty());
  box.settle();
  REQUIRE(box.told.size() == 1);
  CHECK(box.told[0].snapshot->time == at(1s));
  CHECK(box.told[0].snapshot->usage == 300);
  CHECK(box.told[0].growth == std::vector<MemorySample>{{at(0s), 100}, {at(1s), 300}});
  CHECK(box.reader->reads.empty());
  CHECK(box.jobs.empty());
}

TEST_CASE("it is looked once a second at most, at eight pods at most, and not while a look is under way") {
  Box box;
  std::vector<std::string> many;
  for (char name = 'a'; name <= 'z'; ++name) many.push_back({name});
  box.look(many);
  box.reader->now = at(5s);
  box.look(many);
  CHECK(box.jobs.size() == 1);
  box.work();
  CHECK(box.reader->reads.size() == BlackBox::most_pods);
  CHECK(box.box.size() == BlackBox::most_pods);
  box.reader->now = at(5500ms);
  box.look(many);
  CHECK(box.jobs.size() == 1);  // the last one was begun at 0 s
  box.work();
  box.reader->now = at(6s);
  box.look(many);
  CHECK(box.jobs.empty());
  box.look({"a"});
  CHECK(box.box.size() == 1);  // others are forgotten
}

TEST_CASE("where there is no snapshot the pod is read after the kill") {
  Box box;
  box.kill("a");
  CHECK(box.reader->reads.empty());
  box.reader->now = at(10ms);
  box.work();
  REQUIRE(box.told.size() == 1);
  CHECK(box.told[0].snapshot->time == at(10ms));
  CHECK(box.reader->reads == Steps{"/kubepods/poda"});
}

TEST_CASE("a look that was under way at the kill and saw the pod before it serves") {
  Box box;
  box.look({"a"});
  auto [work, done] = std::move(box.jobs.front());
  box.jobs.pop_front();
  work();
  box.reader->now = at(100ms);
  box.kill("a");
  done();
  box.reader->resident = 0;  // by now it is dead
  box.work();
  REQUIRE(box.told.size() == 1);
  CHECK(box.told[0].snapshot->time == at(0s));
}

TEST_CASE("of an old snapshot and what is left after the kill that counts which shows more of its processes") {
  Box box;
  box.look({"a", "b"});
  box.work();
  box.reader->now = at(20s);
  box.reader->resident = 0;
  box.kill("a");
  box.work();
  box.reader->resident = 5000;
  box.kill("b");
  box.work();
  REQUIRE(box.told.size() == 2);
  CHECK(box.told[0].snapshot->time == at(0s));
  CHECK(box.told[1].snapshot->time == at(20s));
}

TEST_CASE("a pod that is given time to end is read when that begins, and kept while others are looked at") {
  Box box;
  box.look({"a"});
  box.work();
  box.reader->now = at(1s);
  box.reader->usage = 300;
  box.box.begun(runtime_pod(fixture::pod("a")));
  box.work();
  box.reader->now = at(3s);
  box.look({"b"});
  box.work();
  box.reader->now = at(4s);
  box.kill("a");
  box.settle();
  REQUIRE(box.told.size() == 1);
  CHECK(box.told[0].snapshot->time == at(1s));
  CHECK(box.told[0].growth.size() == 2);
}

TEST_CASE("a thread that hangs has eight pods waiting for it at most, and without a thread nothing is found") {
  Box box;
  for (char name = 'a'; name <= 'j'; ++name) box.kill({name});
  box.settle();
  CHECK(box.told.size() == 2);
  CHECK(box.jobs.size() == BlackBox::most_pods);

  Box without{false};
  without.look({"a"});
  without.kill("a");
  without.settle();
  REQUIRE(without.told.size() == 1);
  CHECK(without.told[0].snapshot == nullptr);
}

TEST_CASE("a pod whose cgroup is gone is told without a snapshot") {
  Box box;
  box.reader->is_gone = true;
  box.kill("a");
  box.work();
  REQUIRE(box.told.size() == 1);
  CHECK(box.told[0].snapshot == nullptr);
}

TEST_CASE("a pod's growth is kept for a minute") {
  Box box;
  for (int second = 0; second < 100; ++second) {
    box.reader->now = at(std::chrono::seconds(second));
    box.look({"a"});
    box.work();
  }
  box.kill("a");
  box.settle();
  REQUIRE(box.told.size() == 1);
  CHECK(box.told[0].growth.front().time == at(39s));
  CHECK(box.told[0].growth.back().time == at(99s));
}

}  // namespace evictd::agent::black_box_test
