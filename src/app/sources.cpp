#include "app/sources.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "app/live_thresholds.hpp"
#include "config/agent_configuration.hpp"
#include "core/duration.hpp"
#include "core/signal.hpp"
#include "kubelet/configuration.hpp"
#include "node/own_place.hpp"
#include "os/log.hpp"
#include "wake/approach_timer.hpp"
#include "wake/cgroup_watch.hpp"
#include "wake/directory_watch.hpp"
#include "wake/gauges.hpp"
#include "wake/memcg_threshold.hpp"
#include "wake/memory_events.hpp"
#include "wake/memory_fence.hpp"
#include "wake/oom_control.hpp"
#include "wake/pod_files.hpp"
#include "wake/psi_trigger.hpp"
#include "wake/sampler.hpp"
#include "wake/self_test.hpp"
#include "wake/tripwire.hpp"

namespace evictd::app {
namespace {

using Directories = std::vector<std::filesystem::path>;

/// By which Kubernetes replaces the files of a mounted ConfigMap.
constexpr std::string_view replaced_mount = "..data";

/// Of files that make up a configuration. Without its thresholds for a moment a node has others in force, and grace
/// periods begin anew.
constexpr core::Duration settle = std::chrono::milliseconds(300);

/// A drop-in may have any name.
bool concerns(const kubelet::Configuration& kubelet, std::string_view name) {
  return name == replaced_mount || name.ends_with(".conf") ||
         std::ranges::find(kubelet.files, std::filesystem::path(name), &std::filesystem::path::filename) !=
             kubelet.files.end();
}

Directories directories_of(const kubelet::Configuration& kubelet) {
  auto directories = kubelet.directories;
  for (const auto& file : kubelet.files) directories.push_back(std::filesystem::absolute(file).parent_path());
  std::ranges::sort(directories);
  directories.erase(std::ranges::unique(directories).begin(), directories.end());
  return directories;
}

std::string below(const std::string& cgroup, const char* name) {
  return (cgroup == "/" ? cgroup : cgroup + "/") + name;
}

/// The self-test's: beside the pods', or where evictd was given a place. Where there is none the self-test says why.
std::string probe_cgroup(const node::CgroupHierarchy& hierarchy, const std::string& node_cgroup) {
  const auto place = node::find_own_place(hierarchy, node_cgroup);
  if (place)
    if (const auto prepared = node::prepare_own_place(hierarchy, *place); !prepared)
      os::log_warning("the cgroup that was delegated to evictd: {}", prepared.error().message);
  return below(place ? place->cgroup : node_cgroup, "evictd-probe");
}

}  // namespace

std::vector<wake::PsiLevel> psi_levels(const config::NotifierSettings& settings) {
  std::vector<wake::PsiLevel> levels;
  if (!settings.has(config::NotifierSource::Psi)) return levels;
  if (settings.psi_some > core::Duration::zero()) levels.push_back({false, settings.psi_some, config::psi_window});
  if (settings.psi_full > core::Duration::zero()) levels.push_back({true, settings.psi_full, config::psi_window});
  return levels;
}

const wake::TurnWatch& SourceMaker::watch_loop(const Measured& measured) const {
  return add<wake::TurnWatch>(sources, reactor, wakes,
                              [&hierarchy = measured.hierarchy, pods_cgroup = measured.memory.pods_cgroup()] {
                                wake::let_go_while_loop_hangs(hierarchy, pods_cgroup);
                              });
}

void SourceMaker::watch_node(const Measured& measured, bool dry_run,
                             std::initializer_list<wake::ApproachListener*> approach) const {
  const auto& settings = configuration.agent.notifier;
  const auto& [hierarchy, memory, disk, readers] = measured;
  const bool v2 = hierarchy.version() == node::CgroupVersion::v2;
  wake::KernelThresholds kernel;
  if (settings.has(config::NotifierSource::Memcg) && !v2) {
    using enum core::Signal;
    kernel.node = &add<wake::MemcgThreshold>(sources, reactor, wakes, MemoryAvailable, hierarchy, memory.node_cgroup());
    kernel.pods = &add<wake::MemcgThreshold>(sources, reactor, wakes, AllocatableMemoryAvailable, hierarchy,
                                             memory.pods_cgroup());
  }
  if (settings.has(config::NotifierSource::Oom) && !v2)
    for (const auto& cgroup : {memory.node_cgroup(), memory.pods_cgroup()})
      add<wake::OomControl>(sources, reactor, wakes, hierarchy, cgroup);
  if (v2) {
    if (memory.node_cgroup() != "/") add<wake::MemoryEvents>(sources, reactor, wakes, hierarchy, memory.node_cgroup());
    add<wake::MemoryEvents>(sources, reactor, wakes, hierarchy, memory.pods_cgroup());
  }
  // In a dry run the agent that acts may have its own there.
  if (settings.self_test_interval > core::Duration::zero() && !dry_run)
    add<wake::SelfTest>(sources, reactor, wakes, hierarchy,
                        wake::SelfTest::Options{.path = probe_cgroup(hierarchy, memory.node_cgroup()),
                                                .interval = settings.self_test_interval},
                        sources);
  if (v2 && !dry_run) hold_pods(measured);
  // Armed after the kernel's thresholds, whose state it goes by.
  wake::Sampler* sampler = nullptr;
  std::vector<node::SignalProbe*> probes{&memory};
  probes.insert(probes.end(), readers.begin(), readers.end());
  if (settings.has(config::NotifierSource::Sampler))
    sampler =
        &add<wake::Sampler>(sources, reactor, wakes, wake::make_gauges(probes, kernel, settings.fallback_interval));
  for (auto* listener : approach) {
    if (listener == nullptr) continue;
    // While the kernel guards the threshold the sampler sleeps, where there is one: then it is told of by passes, too.
    const bool is_told_all = sampler != nullptr && kernel.node == nullptr;
    auto& told = is_told_all ? *listener : add<wake::ApproachTimer>(sources, reactor, *listener);
    if (sampler != nullptr) sampler->tell(told);
  }
  if (const auto levels = psi_levels(settings); !levels.empty())
    for (const auto& place : wake::psi_places(memory, configuration.agent.node.proc_mount, hierarchy))
      add<wake::PsiTrigger>(sources, reactor, wakes, place, levels, sampler);
}

/// What is set at memory.high of the pods' cgroup. One evictd at most does so.
void SourceMaker::hold_pods(const Measured& measured) const {
  const auto& [hierarchy, memory, disk, readers] = measured;
  const auto note = config::runtime_files(configuration.agent).fence;
  const bool among_pods = node::may_run_in(memory.pods_cgroup());
  if (configuration.agent.notifier.v2 == config::MemoryOnV2::Fence)
    add<wake::MemoryFence>(sources, reactor, wakes, hierarchy, memory, note, among_pods);
  if (configuration.agent.notifier.v2 == config::MemoryOnV2::Tripwire)
    add<wake::Tripwire>(sources, reactor, wakes, hierarchy, memory,
                        wake::Tripwire::Options{.note = note, .among_pods = among_pods});
}

void SourceMaker::watch_pods(agent::PodTracker& pods, agent::LocalStorage& storage, PodSources& pod_sources,
                             const node::CgroupHierarchy& hierarchy, const node::NodeMemory& memory,
                             const node::PodRoots& roots) const {
  const auto& settings = configuration.agent.notifier;
  const auto directory = [&](const std::string& cgroup) { return hierarchy.root().path() + cgroup; };
  add<wake::CgroupWatch>(sources, reactor, wakes, directory(memory.node_cgroup()), directory(memory.pods_cgroup()),
                         pods);
  if (!settings.has(config::NotifierSource::Files)) return;
  add<wake::PodFilesWatch>(sources, reactor, wakes, wake::PodFilesOptions{.roots = {roots.kubelet, roots.logs}},
                           [&storage](const std::string& uid) { storage.files_changed(uid); });
  // containerd's snapshotter: its database lies in the directory itself, its layers in "snapshots".
  add<wake::DirectoryWatch>(
      sources, reactor, wakes,
      wake::DirectoryWatchOptions{.source = core::WakeSource::Images, .detail = "images or layers came or went"},
      [](const wake::Arming& arming) {
        return arming.images.empty() ? Directories{} : Directories{arming.images, arming.images / "snapshots"};
      });
  if (const auto manifests = manifest_directory(configuration); !manifests.empty())
    add<wake::DirectoryWatch>(
        sources, reactor, wakes,
        wake::DirectoryWatchOptions{
            .source = core::WakeSource::Manifests, .detail = "static pods changed", .worker = files},
        [manifests](const wake::Arming&) { return Directories{manifests}; },
        [&pods, &pod_sources] {
          pod_sources.manifests_changed();
          pods.changed();
        });
}

void SourceMaker::watch_configuration(LiveThresholds& thresholds) const {
  const auto on_change = [&thresholds] { thresholds.files_changed(); };
  // Where none is named the usual one may come later.
  const auto file = std::filesystem::absolute(configuration.agent_file.value_or(usual_agent_file));
  add<wake::DirectoryWatch>(
      sources, reactor, wakes,
      wake::DirectoryWatchOptions{
          .source = core::WakeSource::Configuration,
          .detail = "the configuration changed",
          .settle = settle,
          .matters = [name = file.filename().native()](
                         std::string_view changed) { return changed == name || changed == replaced_mount; },
          .worker = files},
      [directory = file.parent_path()](const wake::Arming&) { return Directories{directory}; }, on_change);
  add<wake::DirectoryWatch>(
      sources, reactor, wakes,
      wake::DirectoryWatchOptions{
          .source = core::WakeSource::Kubelet,
          .detail = "the kubelet's configuration changed",
          .settle = settle,
          .matters = [&thresholds](std::string_view name) { return concerns(thresholds.kubelet_sources(), name); },
          .worker = files},
      [&thresholds](const wake::Arming&) { return directories_of(thresholds.kubelet_sources()); }, on_change);
  if (!configuration.agent.thresholds.drop_ins.empty()) watch_drop_ins(thresholds);
}

/// The directory may come later: that is told by the one above it, and the pass that follows finds it.
void SourceMaker::watch_drop_ins(LiveThresholds& thresholds) const {
  const std::filesystem::path drop_ins = configuration.agent.thresholds.drop_ins;
  wake::DirectoryWatchOptions options{
      .source = core::WakeSource::DropIns, .detail = "thresholds.dropIns changed", .settle = settle, .worker = files};
  add<wake::DirectoryWatch>(
      sources, reactor, wakes, options, [drop_ins](const wake::Arming&) { return Directories{drop_ins}; },
      [&thresholds] { thresholds.files_changed(); });
  options.source = core::WakeSource::DropInsPlace;
  options.matters = [name = drop_ins.filename().native()](std::string_view changed) { return changed == name; };
  add<wake::DirectoryWatch>(sources, reactor, wakes, options,
                            [drop_ins](const wake::Arming&) { return Directories{drop_ins.parent_path()}; });
}

}  // namespace evictd::app
