#include "agent/pod_usage.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "core/deciding_usage.hpp"
#include "core/filesystem_usage.hpp"
#include "core/pod.hpp"
#include "host/log.hpp"
#include "node/file_error.hpp"
#include "node/pod_directories.hpp"

namespace evictd::agent {
namespace {

std::optional<std::int64_t> value_or_none(const node::FileResult<std::int64_t>& reading) {
  if (reading) return *reading;
  if (reading.error().is_gone()) return 0;
  return std::nullopt;
}

/// Also absent of a pod whose cgroup is not there yet.
std::optional<std::int64_t> known(const node::FileResult<std::int64_t>& reading) {
  return reading ? std::optional{*reading} : std::nullopt;
}

core::DiskUsage find_or_nothing(const auto& usages, std::string_view key) {
  const auto found = usages.find(key);
  return found == usages.end() ? core::DiskUsage{.bytes = 0, .inodes = 0} : found->second;
}

/// The pod-level figure: layers, logs, local ephemeral volumes, and files that belong to no container (kubelet-spec
/// section 7).
std::int64_t ephemeral_bytes(const core::Pod& pod, const core::PodUsage& usage, const core::DiskUsage& pod_level) {
  auto counted = pod;
  std::erase_if(counted.volumes,
                [](const core::Volume& volume) { return volume.kind == core::Volume::Kind::HostPath; });
  constexpr core::FilesystemParts everything{.logs = true, .local_volumes = true, .writable_layers = true};
  return core::disk_usage(counted, usage, everything).bytes + pod_level.bytes.value_or(0);
}

}  // namespace

/// Whether the pods' cgroup counts what the pod holds.
bool PodUsageReader::is_counted(const node::PodMemory& pod) const {
  const auto& parent = memory_.pods_cgroup();
  return pod.path().size() > parent.size() && pod.path().starts_with(parent) && pod.path()[parent.size()] == '/';
}

void PodUsageReader::prepare(const core::PodListPtr& pods) {
  prepared_ = {.pods = pods, .memory = {}, .order = {}};
  std::vector<std::pair<std::int64_t, std::size_t>> held;  // by the bytes last seen
  for (std::size_t place = 0; place < pods->size(); ++place) {
    auto memory = cgroups_.memory((*pods)[place]->uid);
    const auto usage = memory && is_counted(*memory) ? known(memory->usage()) : std::nullopt;
    if (usage)
      held.emplace_back(*usage, place);
    else
      prepared_.order.push_back(place);
    prepared_.memory.push_back(std::move(memory));
  }
  prepared_.always = prepared_.order.size();
  std::ranges::sort(held, std::greater{});
  for (const auto& [bytes, place] : held) prepared_.order.push_back(place);
}

PodUsages PodUsageReader::memory(const core::PodListPtr& pods, std::span<const core::Standing> standings) {
  if (pods != prepared_.pods) prepare(pods);
  return core::read_deciding_usage(*pods, standings, readings());
}

PodUsages PodUsageReader::leading_memory(const core::PodListPtr& pods, std::span<const core::Standing> standings,
                                         std::size_t count) {
  if (pods != prepared_.pods) prepare(pods);
  return core::read_leading_usage(*pods, standings, readings(), count);
}

/// Of the prepared pods.
core::MemoryReadings PodUsageReader::readings() const {
  const auto read = [this](std::size_t place, auto what) -> std::optional<std::int64_t> {
    const auto& pod = prepared_.memory[place];
    return pod ? value_or_none(((*pod).*what)()) : 0;
  };
  return {.order = prepared_.order,
          .always = prepared_.always,
          .held = [read](std::size_t place) { return read(place, &node::PodMemory::usage); },
          .working_set = [read](std::size_t place) { return read(place, &node::PodMemory::working_set); },
          .held_together = [this] { return memory_.pods_usage(); }};
}

PodUsages PodUsageReader::processes(const core::PodList& pods) {
  PodUsages usages;
  usages.reserve(pods.size());
  for (const auto& pod : pods) {
    const auto count = value_or_none(cgroups_.process_count(pod->uid));
    usages.push_back(count ? std::optional(core::PodUsage{.processes = count}) : std::nullopt);
  }
  return usages;
}

PodUsages PodUsageReader::known_disk(const core::PodList& pods) const {
  PodUsages usages;
  usages.reserve(pods.size());
  for (const auto& pod : pods) usages.push_back(known_disk(*pod));
  return usages;
}

std::optional<core::PodUsage> PodUsageReader::known_disk(const core::Pod& pod) const {
  const auto reading = disk_.known(pod.uid);
  const auto runtime_pod = pods_.find(pod.uid);
  if (!reading || !runtime_pod) return std::nullopt;
  core::PodUsage usage;
  usage.volumes = reading->volumes;
  for (const auto& container : runtime_pod->containers)
    usage.containers.push_back({.name = container.name,
                                .rootfs = find_or_nothing(layers_, container.id),
                                .logs = find_or_nothing(reading->logs, container.name)});
  usage.ephemeral = ephemeral_bytes(pod, usage, reading->pod_level);
  return usage;
}

boost::asio::awaitable<void> PodUsageReader::measure_disk(core::PodListPtr pods) {
  if (auto layers = co_await pods::layer_usage(runtime_))
    layers_ = *std::move(layers);
  else
    host::log_warning("{}", layers.error().message);
  std::vector<node::PodName> names;
  for (const auto& pod : *pods) names.push_back({pod->uid, pod->name_space, pod->name});
  co_await disk_.measure(names);
  std::erase_if(incomplete_, [&](const std::string& uid) { return disk_.known(uid) == nullptr; });
  for (const auto& name : names) tell_whether_complete(name);
}

/// Who hides files is seen by what the node's disk says, but not by what is counted of the pod.
void PodUsageReader::tell_whether_complete(const node::PodName& pod) {
  const auto reading = disk_.known(pod.uid);
  const bool is_complete = reading == nullptr || reading->complete;
  if (is_complete) incomplete_.erase(pod.uid);
  if (is_complete || !incomplete_.insert(pod.uid).second) return;
  host::log_warning("pod {}/{}: not all of its files could be counted{}; it counts with those that were",
                    pod.name_space, pod.name, reading->error ? ": " + reading->error->message : " in time");
}

core::PodUsage PodUsageReader::with_containers(const core::Pod& pod, core::PodUsage usage) const {
  const auto runtime_pod = pods_.find(pod.uid);
  if (!runtime_pod) return usage;
  for (const auto& container : runtime_pod->containers)
    if (const auto working_set = cgroups_.working_set_of(container.cgroup))
      usage.containers.push_back({.name = container.name, .working_set = *working_set});
  return usage;
}

}  // namespace evictd::agent
