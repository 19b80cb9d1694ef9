#pragma once
#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/chain.hpp"
#include "admission/plugin_devices.hpp"
#include "agent/fake_plugin_calls.hpp"
#include "agent/loop.hpp"
#include "agent/pod_admission.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "events/event_log.hpp"
#include "fixture/machines.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::admission_scene {

/// A node for one pod, without devices.
struct FakeNode final : AdmittingNode {
  [[nodiscard]] admission::NodeSnapshot snapshot() const override { return now; }
  void save(const admission::Allocations& allocations, const admission::Coming& awaited, Written written) override {
    saved.push_back(allocations);
    coming = awaited;
    if (disk_hangs)
      writes.push_back(std::move(written));
    else
      written(disk);
  }

  admission::NodeSnapshot now{.node = core::Node{.name = "n1", .allocatable = fixture::amounts({{"pods", "1"}})}};
  std::vector<admission::Allocations> saved{};
  admission::Coming coming{};     ///< as it was saved last
  Result<void> disk{};            ///< what comes of a write
  bool disk_hangs = false;        ///< nothing comes of one
  std::vector<Written> writes{};  ///< of which nothing came
};

inline const std::string gpu = "example.com/gpu";

inline core::Pod with_gpus(core::Pod pod, std::string_view count) {
  pod.containers = {fixture::wanting(fixture::container("main"), gpu, count)};
  return pod;
}

inline core::Pod with_memory(core::Pod pod, const char* request) {
  pod.containers = {fixture::container("main", {{"memory", request}})};
  return pod;
}

inline constexpr int requests_3276_mib = 600;  // as an oom_score_adj, of 8 GiB

/// Pods that ask for it, and the answers.
struct Scene {
  ~Scene() { loop.tracker.stop(); }

  void list_pods() {
    runtime.start();
    loop.runtime.watch(loop.lister);
    loop.tracker.start();
    REQUIRE(test::run_until(loop.reactor, [this] { return loop.tracker.listed(); }));
  }
  std::vector<v1::AdmitResponse> admit(std::vector<core::Pod> pods, bool reserve) {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    for (auto& pod : pods) asked->push_back({.pod = std::move(pod)});
    return answer(asked, reserve);
  }
  std::vector<v1::AdmitResponse> answer(const api::AdmissionRequestsPtr& asked, bool reserve) {
    const auto task = admission.admit(asked, reserve);
    std::vector<v1::AdmitResponse> answers;
    while (answers.size() < asked->size()) {
      auto some = decide(*task);
      REQUIRE_FALSE(some.empty());
      for (auto& one : some) answers.push_back(std::move(one));
    }
    if (task->has_to_save()) done(task->save(answers));
    task->keep();
    return answers;
  }
  v1::AdmitResponse resize(core::Pod desired, bool reserve = false) {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    asked->push_back({.pod = std::move(desired), .resize = true});
    return answer(asked, reserve).front();
  }
  v1::AdmitResponse make_container(core::Pod pod, std::string container) {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    asked->push_back({.pod = std::move(pod), .from_runtime = true, .container = std::move(container)});
    return answer(asked, true).front();
  }
  v1::AdmitResponse update(std::string container, pods::LinuxResources resources) {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    asked->push_back({.pod = {}, .from_runtime = true, .resize = true});
    asked->back().update = api::ContainerUpdate{.container_id = std::move(container), .resources = resources};
    return answer(asked, true).front();
  }
  /// As the API does it.
  std::vector<v1::AdmitResponse> decide(api::AdmissionTask& task) {
    if (!has_devices()) return fixture::value_of(task.decide_some());
    done(task.prepare(client));
    auto some = fixture::value_of(task.decide_some());
    done(task.carry_out(some));
    return some;
  }
  void done(boost::asio::awaitable<void> work) {
    bool ended = false;
    boost::asio::co_spawn(loop.reactor, std::move(work), [&](const std::exception_ptr&) { ended = true; });
    REQUIRE(test::run_until(loop.reactor, [&] { return ended; }));
  }
  std::unique_ptr<api::AdmissionTask> begin(core::Pod pod) {
    auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
    asked->push_back({.pod = std::move(pod)});
    return admission.admit(asked, true);
  }
  /// The node is one for ten pods and 8 GiB.
  void make_roomy() { node.now.node->allocatable = fixture::amounts({{"pods", "10"}, {"memory", "8Gi"}}); }
  /// The node has the devices a, b and c of a plugin.
  void add_devices() {
    node.now.plugins.groups[gpu] = std::make_shared<const admission::DeviceGroup>(
        admission::DeviceGroup{.places = {{"a", {}}, {"b", {}}, {"c", {}}}, .healthy = {"a", "b", "c"}});
  }
  [[nodiscard]] bool has_devices() const { return !node.now.plugins.groups.empty(); }
  /// It has room for five pods, too.
  void serve_devices() {
    node.now.node->allocatable = fixture::amounts({{"pods", "5"}});
    add_devices();
    list_pods();
  }
  v1::AdmitResponse admit_with_gpus(const std::string& name, std::string_view count) {
    return admit({with_gpus(fixture::pod(name), count)}, true).front();
  }
  /// The runtime has these of the pods a and b, which the loop's evictor can stop.
  void run(const std::vector<std::string>& names, int oom_score_adj = 1000) {
    const std::string parent = oom_score_adj < 1000 ? "/kubepods/burstable/pod" : "/kubepods/besteffort/pod";
    for (const auto& name : names) {
      runtime.put(test::sandbox("s-" + name, name, name), test::sandbox_json(parent + name));
      runtime.put(test::container("c-" + name, "s-" + name, "main"), test::container_json(oom_score_adj));
    }
    list_pods();
  }
  /// Until the runtime's list has so many pods.
  void list_until(std::size_t pods) {
    loop.tracker.changed();
    REQUIRE(test::run_until(loop.reactor, [&] { return loop.tracker.pods()->size() == pods; }));
  }
  void end(const std::string& name) {
    loop.stopper.report(name, FakeStopper::killed());
    loop.stopper.report(name, FakeStopper::ended());
  }
  void displace_b() {
    loop.evictions.displace(std::make_shared<const core::Pod>(fixture::pod("b")),
                            {core::Displacement::NodeShutdown, "why"}, std::chrono::seconds(30));
  }
  int rejections() {
    int count = 0;
    const auto subscription = events.subscribe(0, [] {});
    while (const auto next = subscription->next())
      if (next->kind() == v1::Event::ADMISSION_REJECTED) ++count;
    return count;
  }

  test::FakeRuntime runtime;
  Loop loop{{}, core::Signal::MemoryAvailable, runtime.endpoint()};
  events::EventLog events{loop.reactor.get_executor()};
  Recorder recorder{events};
  FakeNode node;
  FakePluginCalls plugins;
  api::Departure client;
  PodAdmission admission{{.reactor = loop.reactor.get_executor(),
                          .pods = loop.tracker,
                          .evictions = loop.evictions,
                          .catalog = loop.catalog,
                          .recorder = recorder,
                          .chain = admission::kubelet_chain().value(),
                          .node = node,
                          .clock = loop.clock,
                          .plugins = &plugins},
                         {}};
};

/// A reserved admission of one pod.
struct Asking {
  /// Nothing: it waits.
  std::optional<v1::AdmitResponse> decide() { return taken(fixture::value_of(task->decide_some())); }
  /// The same on a node with devices.
  std::optional<v1::AdmitResponse> decide(Scene& scene) { return taken(scene.decide(*task)); }

  std::optional<v1::AdmitResponse> taken(const std::vector<v1::AdmitResponse>& some) {
    if (!some.empty()) return some.front();
    task->when_room([this] { ++woken; });
    return std::nullopt;
  }

  std::unique_ptr<api::AdmissionTask> task;
  int woken = 0;
};

inline core::Pod vital(std::string name) {
  return fixture::with_priority(fixture::pod(std::move(name)), 2'000'000'000);
}

}  // namespace evictd::agent::admission_scene
