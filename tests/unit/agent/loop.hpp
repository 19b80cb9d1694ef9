#pragma once
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.hpp"
#include "agent/fake_clock.hpp"
#include "agent/fakes.hpp"
#include "agent/inferred_volumes.hpp"
#include "agent/local_storage.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/pod_usage.hpp"
#include "agent/runtime_events.hpp"
#include "agent/unlisted_pods.hpp"
#include "async/spawn.hpp"
#include "async/worker.hpp"
#include "evict/node_reclaim.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "host/systemd.hpp"
#include "kube/reporter.hpp"
#include "wake/deadline.hpp"
#include "wake/fallback_timer.hpp"

namespace evictd::agent {

/// What it is given is never done.
struct IdleWorker final : async::Worker {
  void run(std::move_only_function<void()>, std::move_only_function<void()>) override {}
};

/// A source that remembers what it was armed by.
class FakeWakeSource final : public wake::Source {
 public:
  void arm(const wake::Arming& arming) override { armed.push_back(arming); }
  void rearm_all() override { ++rearmed; }
  [[nodiscard]] std::vector<wake::SourceStatus> status() const override { return {{.name = "fake", .state = "armed"}}; }

  std::vector<wake::Arming> armed;
  int rearmed = 0;
};

/// Has the pods listed when the runtime appears.
struct Lister final : cri::PresenceListener {
  Lister(PodTracker& tracker, RuntimeEvents& events) : tracker{tracker}, events{events} {}
  void presence_changed(const cri::Presence& presence) override {
    tracker.changed();
    if (presence.present) events.appeared(presence.detail);
  }

  PodTracker& tracker;
  RuntimeEvents& events;
};

struct LoopOptions {
  core::SynchronizerOptions synchronizer{};
  bool dry_run = false;
  bool knows_layout = true;  ///< of the disks: one for all
};

/// The loop on a node of 8 GiB with the pods a (2 GiB) and b (100 MiB), under a hard threshold of 1 GiB. The clock, the
/// counters, the evictor and the event log are the test's; unless it says so, nobody listens at the runtime's endpoint.
struct Loop {
  explicit Loop(LoopOptions options = {}, core::Signal signal = core::Signal::MemoryAvailable,
                std::string endpoint = "unix:///nowhere")
      : policy{policy_for(signal)}, options{options}, endpoint{std::move(endpoint)} {
    for (const auto* name : {"a", "b"}) running.pods[name] = runtime_pod(fixture::pod(name));
    usage.working_sets = {{"a", std::int64_t{2} << 30}, {"b", 100 << 20}};
    observer.now = memory(4096);
    auto source = std::make_unique<FakeWakeSource>();
    wake_source = source.get();
    sources.push_back(std::move(source));
    core::Turn turn{reason(core::WakeSource::Other)};
    if (options.knows_layout) decider.tell(core::LayoutDetected{}, turn);
    decider.tell(
        core::PodsChanged{std::make_shared<core::PodList>(fixture::pods({fixture::pod("a"), fixture::pod("b")}))},
        turn);
  }

  /// So many MiB are available.
  static core::Observations memory(std::int64_t mebibytes) {
    return fixture::observed({{core::Signal::MemoryAvailable, mebibytes << 20, std::int64_t{8} << 30}});
  }
  static core::EvictionPolicy policy_for(core::Signal signal) {
    return {.thresholds = {fixture::threshold(signal, "1Gi")}, .local_storage_isolation = false};
  }
  [[nodiscard]] wake::Wake reason(core::WakeSource source) const {
    return {.time = clock.now(), .reasons = {{source, "", clock.now()}}};
  }

  /// Runs the loop until it waits; the first pass is over then.
  void start() {
    async::spawn(reactor.get_executor(), run(), "the loop");
    clock.settle();
    steps.clear();
  }
  /// A source speaks; runs until the loop waits again.
  Steps wake(core::WakeSource source = core::WakeSource::Memcg) {
    steps.clear();
    wakes.notify(reason(source).reasons.front());
    clock.settle();
    return steps;
  }
  [[nodiscard]] bool did(const std::string& step) const { return std::ranges::find(steps, step) != steps.end(); }

  core::EvictionPolicy policy;
  LoopOptions options;
  std::string endpoint;
  Steps steps{};
  bool ended = false;
  fixture::Tree tree{fixture::v1_node(
      {.total = std::int64_t{8} << 30}, {},
      {fixture::dir(
          "kubepods",
          fixture::v1_memory({}, {fixture::dir("stray", fixture::v1_memory({.usage = std::int64_t{3} << 30}))}))})};
  config::NodeSettings settings = fixture::settings_for(tree);
  node::CgroupHierarchy hierarchy = fixture::value_of(node::CgroupHierarchy::detect(settings.cgroup_mount));
  node::NodeMemory node_memory = fixture::value_of(node::NodeMemory::open(hierarchy, settings));
  node::PodCgroups cgroups{hierarchy};
  boost::asio::io_context reactor{1};
  FakeClock clock{reactor};
  FakeObserver observer{steps, reactor};
  FakeUsage usage{steps, reactor};
  FakeLog log{steps};
  FakeStopper stopper{steps};
  FakeSaver saver{steps};
  FakePods running;
  node::PodDisk disk{reactor.get_executor(), [] { return nullptr; }, {}};
  cri::Client runtime{reactor.get_executor(), endpoint};
  evict::NodeReclaimer reclaimer{runtime};
  pods::CriPods listed{runtime, std::int64_t{8} << 30, pods::TrustedNamespaces{{}}};
  pods::Catalog catalog{"", pods::TrustedNamespaces{{"kube-system"}}};
  UnlistedPods unlisted{{.hierarchy = hierarchy,
                         .pods_cgroup = "/kubepods",
                         .proc = tree.path("proc").native(),
                         .memory_capacity = std::int64_t{8} << 30}};
  InferredVolumes volumes{std::make_unique<IdleWorker>(), {}};
  PodUsageReader reader{{.cgroups = cgroups, .memory = node_memory, .disk = disk, .runtime = runtime, .pods = listed}};
  wake::Wakes wakes{reactor.get_executor()};
  wake::Deadline deadline{reactor.get_executor(), wakes};
  wake::FallbackTimer fallback{reactor.get_executor(), wakes, std::chrono::hours(1)};
  std::vector<std::unique_ptr<wake::Source>> sources;
  FakeWakeSource* wake_source = nullptr;
  Alarms alarms{{.wakes = wakes, .deadline = deadline, .fallback = fallback, .sources = sources}};
  host::ServiceManager service{reactor.get_executor()};
  Decider decider{policy, options.synchronizer, clock, deadline};
  EvictionRecords records;
  ConditionTimes conditions;
  // Sends nothing: what it is told waits.
  kube::Reporter cluster{reactor.get_executor(), {.node = "n1"}, {}, [](os::LogLevel, const std::string&) {}};
  NodeReports reports{
      {.observer = observer, .service = service, .state = saver, .conditions = conditions, .cluster = &cluster}};
  LocalStorage storage{
      reactor.get_executor(),
      {.longest_wait = std::chrono::seconds(10)},
      {.disk = disk, .usage = usage, .pods = listed, .catalog = catalog, .alarms = alarms, .clock = clock}};
  RuntimeEvents events{reactor.get_executor(), runtime, clock, false};
  PodTracker tracker{reactor.get_executor(),
                     std::chrono::seconds(10),
                     {.runtime = runtime,
                      .events = events,
                      .pods = listed,
                      .catalog = catalog,
                      .unlisted = unlisted,
                      .volumes = volumes,
                      .cgroups = cgroups,
                      .usage = reader,
                      .storage = storage,
                      .evictions = records,
                      .log = log,
                      .decisions = decider,
                      .state = saver,
                      .wakes = wakes,
                      .clock = clock,
                      .cluster = &cluster}};
  Lister lister{tracker, events};
  Evictions evictions{reactor.get_executor(),
                      {.dry_run = options.dry_run},
                      {.records = records,
                       .stopper = stopper,
                       .pods = running,
                       .usage = usage,
                       .observer = observer,
                       .log = log,
                       .decisions = decider,
                       .reports = reports,
                       .state = saver,
                       .wakes = wakes,
                       .clock = clock}};

  Agent agent{reactor.get_executor(),
              clock,
              decider,
              {.observer = observer,
               .usage = usage,
               .recorder = log,
               .evictions = evictions,
               .pods = tracker,
               .reclaimer = reclaimer,
               .alarms = alarms,
               .reports = reports}};

 private:
  boost::asio::awaitable<void> run() {
    co_await agent.run();
    ended = true;
  }
};

}  // namespace evictd::agent
