#pragma once
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "agent/decision_log.hpp"
#include "agent/decisions.hpp"
#include "agent/kernel_oom.hpp"
#include "agent/observer.hpp"
#include "agent/running_pods.hpp"
#include "agent/trimmer.hpp"
#include "agent/usage.hpp"
#include "evict/eviction_record.hpp"
#include "evict/pod_stopper.hpp"
#include "evict/progress.hpp"
#include "fixture/node.hpp"
#include "fixture/pods.hpp"
#include "state/state_saver.hpp"

// The loop's neighbours as a test has them. What they are asked for they write down, one line each, in one list for
// all: so a test sees the order.

template <>
struct doctest::StringMaker<std::vector<std::string>> {
  static String convert(const std::vector<std::string>& lines) {
    return fmt::format("{}", fmt::join(lines, ", ")).c_str();
  }
};

namespace evictd::agent {

using Steps = std::vector<std::string>;

/// A pod that runs one container.
inline pods::RuntimePodPtr runtime_pod(const core::Pod& pod) {
  pods::RuntimePod runs{.pod = std::make_shared<const core::Pod>(pod), .cgroup = "/kubepods/pod" + pod.uid};
  runs.containers = {{.id = "c-" + pod.uid, .name = "main", .state = pods::ContainerState::Running}};
  return std::make_shared<const pods::RuntimePod>(std::move(runs));
}

/// A node whose counters the test sets.
class FakeObserver final : public Observer {
 public:
  FakeObserver(Steps& steps, boost::asio::io_context& reactor) : steps_{steps}, never_{reactor, core::Instant::max()} {}

  Result<node::NodeMemoryReading> read(core::Instant) override {
    steps_.emplace_back("read node");
    if (on_read) on_read();
    if (broken) return fail("the node cannot be read");
    node::NodeMemoryReading reading;
    reading.observations = now;
    return reading;
  }
  Result<node::NodeMemoryReading> read_memory(core::Instant time) override {
    ++of_memory_alone;
    return read(time);
  }
  boost::asio::awaitable<Result<node::NodeMemoryReading>> read_with_disks() override {
    steps_.emplace_back("read disks");
    if (disks_hang) co_await never_.async_wait(boost::asio::use_awaitable);
    node::NodeMemoryReading reading;
    reading.observations = now;
    co_return reading;
  }
  core::Observations with_memory_now(core::Observations, core::Instant) const override {
    steps_.emplace_back("read memory again");
    return again.value_or(now);
  }
  std::optional<core::FilesystemLayout> layout() const override { return layout_now; }

  core::Observations now;
  std::function<void()> on_read;                     // what happens while the node is read
  std::optional<core::FilesystemLayout> layout_now;  // absent: the disks have not answered yet
  std::optional<core::Observations> again;           // what a second look in the same pass says; absent: the same
  int of_memory_alone = 0;                           // of the readings
  bool broken = false;
  bool disks_hang = false;

 private:
  Steps& steps_;
  boost::asio::steady_timer never_;
};

/// Pods whose usage the test sets, by uid: bytes of memory.
class FakeUsage final : public Usage {
 public:
  FakeUsage(Steps& steps, boost::asio::io_context& reactor) : steps_{steps}, never_{reactor, core::Instant::max()} {}

  PodUsages memory(const core::PodListPtr& pods, std::span<const core::Eligibility>) override {
    steps_.emplace_back("read pods");
    return of(*pods);
  }
  void prepare(const core::PodListPtr&) override { steps_.emplace_back("look at pods"); }
  PodUsages memory_as_listed(const core::PodListPtr& pods) override { return of(*pods); }
  PodUsages processes(const core::PodList& pods) override { return of(pods); }
  PodUsages known_disk(const core::PodList& pods) const override { return of(pods); }
  std::vector<bool> out_of_reach(const core::PodList& pods) const override {
    return std::vector<bool>(pods.size(), false);
  }
  boost::asio::awaitable<void> measure_disk(core::PodListPtr pods, Layers) override {
    steps_.emplace_back("measure disk");
    for (const auto& pod : *pods) measured.push_back(pod->uid);
    if (!disks_answer) co_await never_.async_wait(boost::asio::use_awaitable);
  }
  core::PodUsage with_containers(const core::Pod&, core::PodUsage usage) const override { return usage; }
  std::int64_t held(std::string_view uid) const override {
    const auto found = working_sets.find(uid);
    return found == working_sets.end() ? 0 : found->second;
  }
  std::optional<std::int64_t> coming_back(const pods::RuntimePod& pod) const override { return held(pod.pod->uid); }
  std::int64_t held_by_tmpfs(std::string_view uid) const override {
    const auto found = in_tmpfs.find(uid);
    return found == in_tmpfs.end() ? 0 : found->second;
  }
  std::optional<std::int64_t> task_count(std::string_view) const override { return processes_each; }

  std::map<std::string, std::int64_t, std::less<>> working_sets;
  std::map<std::string, std::int64_t, std::less<>> in_tmpfs;  // bytes that outlive the processes
  std::int64_t processes_each = 1;
  bool disks_answer = false;
  std::vector<std::string> measured;  // uids, in the order in which their disks were asked for

 private:
  PodUsages of(const core::PodList& pods) const {
    PodUsages usages;
    for (const auto& pod : pods) usages.push_back(core::PodUsage{.working_set = held(pod->uid)});
    return usages;
  }

  Steps& steps_;
  boost::asio::steady_timer never_;
};

/// Stops pods when the test says so: report("a", evict::ContainersKilled{…}).
class FakeStopper final : public evict::PodStopper {
 public:
  explicit FakeStopper(Steps& steps) : steps_{steps} {}

  void begin(pods::RuntimePodPtr pod, core::Duration grace_period, evict::Afterwards afterwards, evict::Report report,
             const std::optional<evict::Reached>& reached, const std::optional<evict::Shortage>& shortage) override {
    const auto& uid = pod->pod->uid;
    steps_.push_back("stop " + uid);
    begun.push_back({uid, grace_period, afterwards, reached, report, pod, shortage});
    if (kills_at_once) report(killed());
  }
  /// By the latest eviction of the pod.
  void report(const std::string& uid, const evict::Progress& progress) {
    const auto eviction = std::ranges::find(begun.rbegin(), begun.rend(), uid, &Begun::uid);
    eviction->report(progress);
  }
  void hurry() override { ++hurried; }
  static evict::ContainersKilled killed() { return {.containers = {"main"}, .method = "cgroup.kill", .time = {}}; }
  static evict::CleanupEnded ended(bool timed_out = false) {
    return {.timed_out = timed_out, .remaining = {}, .time = {}};
  }

  struct Begun {
    std::string uid;
    core::Duration grace_period;
    evict::Afterwards afterwards;
    std::optional<evict::Reached> reached;
    evict::Report report;
    pods::RuntimePodPtr pod;
    std::optional<evict::Shortage> shortage;
  };
  std::vector<Begun> begun;
  bool kills_at_once = false;
  int hurried = 0;

 private:
  Steps& steps_;
};

class FakeLog final : public DecisionLog {
 public:
  explicit FakeLog(Steps& steps) : steps_{steps} {}

  void crossed(const core::ReportCrossing&, const core::Turn&) override { ++crossings; }
  void conditions(const core::ReportConditions&, const core::Turn&) override {}
  void no_victim(const core::NoVictim&, const core::Turn&) override { steps_.emplace_back("no victim"); }
  void rate_limited(const core::RateLimited&, const core::Turn&) override { steps_.emplace_back("rate limited"); }
  void recovered(const core::Recovered&, const core::Turn&) override { steps_.emplace_back("recovered"); }
  void reclaimed(const core::ReclaimNode&, const evict::ReclaimResult&, const core::Observations&,
                 const core::Observations&, const core::Turn&) override {
    steps_.emplace_back("reclaimed");
  }
  evict::EvictionRecord intended(core::Eviction eviction, const core::Turn& turn, bool) override {
    steps_.push_back("intend " + eviction.pod->uid);
    return {std::move(eviction), {}, ++last_id, turn};
  }
  void rehearse(const evict::EvictionRecord& record) override {
    steps_.push_back("rehearse telling of " + record.pod->uid);
  }
  void progress(evict::EvictionRecord& record, const evict::Progress& progress) override {
    steps_.push_back(std::string(evict::name(progress)) + " " + record.pod->uid);
  }
  void explained(evict::EvictionRecord& record, const Evidence&) override {
    steps_.push_back("explained " + record.pod->uid);
  }
  void failed(const evict::EvictionRecord& record, const Error&) override {
    steps_.push_back("failed " + record.pod->uid);
  }
  void kernel_oom(const KernelKill& kill) override { kernel_kills.push_back(kill); }
  void trimmed(const TrimReport& report) override { trims.push_back(report); }
  void source_degraded(const std::string& source, const Error&) override { steps_.push_back(source + " degraded"); }
  void source_recovered(const std::string& source, const std::string&) override {
    steps_.push_back(source + " recovered");
  }

  std::uint64_t last_id = 0;
  int crossings = 0;
  std::vector<KernelKill> kernel_kills;
  std::vector<TrimReport> trims;

 private:
  Steps& steps_;
};

class FakeSaver final : public state::StateSaver {
 public:
  explicit FakeSaver(Steps& steps) : steps_{steps} {}
  void save() override {
    steps_.emplace_back("save");
    if (on_save) on_save();
  }
  void rehearse(const evict::EvictionRecord& record) override {
    steps_.push_back("rehearse saving of " + record.pod->uid);
  }
  std::function<void()> on_save;

 private:
  Steps& steps_;
};

/// The pods that the test says run.
class FakePods final : public RunningPods {
 public:
  pods::RuntimePodPtr find(std::string_view uid) const override {
    const auto found = pods.find(uid);
    return found == pods.end() ? nullptr : found->second;
  }
  void changed() override { ++changes; }

  std::map<std::string, pods::RuntimePodPtr, std::less<>> pods;
  int changes = 0;
};

/// A state machine that asks for nothing.
class FakeDecisions final : public Decisions {
 public:
  explicit FakeDecisions(Steps& steps) : steps_{steps} {}

  void tell(const core::Event& event, core::Turn&) override {
    if (const auto* ended = std::get_if<core::CleanupEnded>(&event))
      steps_.push_back("tell that " + ended->uid + (ended->released ? " went" : " did not go"));
    if (const auto* displaced = std::get_if<core::PodDisplaced>(&event))
      steps_.push_back("tell that " + displaced->pod->uid + " is displaced");
    if (const auto* held = std::get_if<core::PodHeld>(&event))
      steps_.push_back("tell that " + held->uid + (held->held ? " is held" : " is held no more"));
    if (const auto* returned = std::get_if<core::PodReturned>(&event))
      steps_.push_back("tell that " + returned->uid + " returned");
    if (const auto* acting = std::get_if<core::ActingChanged>(&event))
      steps_.emplace_back(acting->acts ? "tell that evictd acts" : "tell that evictd only watches");
    if (const auto* changed = std::get_if<core::PodsChanged>(&event)) {
      std::string line = "tell of pods:";
      for (const auto& pod : *changed->pods) line += " " + pod->uid;
      steps_.push_back(line);
    }
  }

 private:
  Steps& steps_;
};

}  // namespace evictd::agent
