#include "agent/pod_usage.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "agent/coming_back.hpp"
#include "core/deciding_usage.hpp"
#include "core/filesystem_usage.hpp"
#include "core/pod.hpp"
#include "node/pod_directories.hpp"
#include "os/file_error.hpp"
#include "os/log.hpp"
#include "pods/current_containers.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::agent {
namespace {

/// Of the pods that held the most when they were listed so many containers' files stay open as well.
constexpr std::size_t kept_containers = 16;
/// Of a list in which nothing is new so many of those that held the most are read again, and this part of all.
constexpr std::size_t read_again = 64;
constexpr std::size_t part_read_again = 4;

/// What has no cgroup, or none that the runtime could tell of (EINVAL), cannot be shown to use anything: a number that
/// is missing would put the pod before all others.
std::optional<std::int64_t> value_or_none(const os::FileResult<std::int64_t>& reading) {
  if (reading) return *reading;
  if (reading.error().is_gone() || reading.error().code == EINVAL) return 0;
  return std::nullopt;
}

/// Also absent of a pod whose cgroup is not there yet.
std::optional<std::int64_t> known(const os::FileResult<std::int64_t>& reading) {
  return reading ? std::optional{*reading} : std::nullopt;
}

core::DiskUsage find_or_nothing(const auto& usages, std::string_view key) {
  const auto found = usages.find(key);
  return found == usages.end() ? core::DiskUsage{.bytes = 0, .inodes = 0} : found->second;
}

/// The pod-level figure: layers, logs, local ephemeral volumes, and files that belong to no container (kubelet-spec
/// section 7).
std::int64_t ephemeral_bytes(const core::Pod& pod, const core::PodUsage& usage, const core::DiskUsage& pod_level) {
  auto bytes = pod_level.bytes.value_or(0);
  for (const auto& container : usage.containers)
    bytes += container.rootfs.bytes.value_or(0) + container.logs.bytes.value_or(0);
  for (const auto& volume : pod.volumes) {
    if (volume.kind == core::Volume::Kind::HostPath || !core::is_local(volume)) continue;
    const auto measured = usage.volumes.find(volume.name);
    if (measured != usage.volumes.end()) bytes += measured->second.bytes.value_or(0);
  }
  return bytes;
}

/// The runtime measures a layer every 10 s; what was walked to its end is newer. Of a walk that saw a part of it, or
/// none, the larger number is nearer to the truth.
core::DiskUsage layer_of(const node::PodDiskReading& reading, const pods::LayerUsage& told, std::string_view id) {
  const auto walked = reading.layers.find(id);
  const auto known = find_or_nothing(told, id);
  if (walked == reading.layers.end()) return known;
  if (reading.complete) return walked->second;
  return {.bytes = std::max(walked->second.bytes, known.bytes),
          .inodes = std::max(walked->second.inodes, known.inodes)};
}

}  // namespace

/// Of the prepared pods. One that has no cgroup any more holds nothing.
class PodUsageReader::Readings final : public core::MemoryReadings {
 public:
  Readings(const Prepared& prepared, const node::NodeMemory& node) : prepared_{prepared}, node_{node} {}

  [[nodiscard]] std::span<const std::size_t> order() const override { return prepared_.order; }
  [[nodiscard]] std::size_t always() const override { return prepared_.always; }
  [[nodiscard]] std::optional<std::int64_t> held(std::size_t place) const override {
    const auto& pod = prepared_.memory[place];
    return pod ? value_or_none(pod->usage()) : 0;
  }
  [[nodiscard]] std::optional<std::int64_t> working_set(std::size_t place) const override {
    const auto& pod = prepared_.memory[place];
    return pod ? value_or_none(pod->working_set()) : 0;
  }
  [[nodiscard]] std::optional<std::int64_t> held_together() const override { return node_.pods_usage(); }
  [[nodiscard]] bool runs(std::size_t place) const override { return prepared_.runs[place]; }

 private:
  const Prepared& prepared_;
  const node::NodeMemory& node_;
};

/// Whether the pods' cgroup counts what the pod holds.
bool PodUsageReader::is_counted(const node::PodMemory& pod) const {
  const auto& parent = memory_.pods_cgroup();
  return pod.path().size() > parent.size() && pod.path().starts_with(parent) && pod.path()[parent.size()] == '/';
}

void PodUsageReader::prepare(const core::PodListPtr& pods) {
  prepared_ = {.pods = pods, .memory = {}, .order = {}, .held = {}, .runs = running(*pods)};
  for (const auto& pod : *pods) prepared_.memory.push_back(cgroups_.memory(pod->uid));
  prepared_.held.resize(pods->size());
  for (std::size_t place = 0; place < pods->size(); ++place) read_held(place);
  put_in_order();
}

void PodUsageReader::prepare_again(const core::PodListPtr& pods) {
  if (pods != prepared_.pods) return prepare(pods);
  const auto first = std::span{prepared_.order}.first(std::min(prepared_.order.size(), prepared_.always + read_again));
  for (const auto place : first) read_held(place);
  for (auto place = prepared_.turn++ % part_read_again; place < pods->size(); place += part_read_again)
    read_held(place);
  put_in_order();
}

void PodUsageReader::read_held(std::size_t place) {
  const auto& memory = prepared_.memory[place];
  prepared_.held[place] = memory ? known(memory->usage()) : std::nullopt;
}

/// Those first of which the pods' cgroup does not tell, and then whoever held the most.
void PodUsageReader::put_in_order() {
  prepared_.order.clear();
  std::vector<std::pair<std::int64_t, std::size_t>> held;
  for (std::size_t place = 0; place < prepared_.held.size(); ++place)
    if (const auto& bytes = prepared_.held[place]; bytes && is_counted(*prepared_.memory[place]))
      held.emplace_back(*bytes, place);
    else
      prepared_.order.push_back(place);
  prepared_.always = prepared_.order.size();
  std::ranges::sort(held, std::greater{});
  for (const auto& [bytes, place] : held) prepared_.order.push_back(place);
  auto left = kept_containers;
  for (const auto place : prepared_.order)
    if (const auto& memory = prepared_.memory[place]) left -= memory->keep_containers_open(left);
}

PodUsages PodUsageReader::memory(const core::PodListPtr& pods, std::span<const core::Eligibility> eligibilities) {
  if (pods != prepared_.pods) prepare(pods);
  return core::read_deciding_usage(*pods, eligibilities, Readings{prepared_, memory_});
}

PodUsages PodUsageReader::memory_as_listed(const core::PodListPtr& pods) {
  if (pods != prepared_.pods) prepare(pods);
  PodUsages usages;
  usages.reserve(pods->size());
  for (std::size_t place = 0; place < pods->size(); ++place)
    usages.push_back(core::PodUsage{
        .working_set = prepared_.held[place].value_or(0), .at_most = true, .runs = prepared_.runs[place]});
  return usages;
}

PodUsages PodUsageReader::leading_memory(const core::PodListPtr& pods, std::span<const core::Eligibility> eligibilities,
                                         std::size_t count) {
  if (pods != prepared_.pods) prepare(pods);
  return core::read_leading_usage(*pods, eligibilities, Readings{prepared_, memory_}, count);
}

PodUsages PodUsageReader::processes(const core::PodList& pods) {
  PodUsages usages;
  usages.reserve(pods.size());
  const auto runs = running(pods);
  for (std::size_t place = 0; place < pods.size(); ++place) {
    const auto count = value_or_none(cgroups_.process_count(pods[place]->uid));
    usages.push_back(count ? std::optional(core::PodUsage{.runs = runs[place], .processes = count}) : std::nullopt);
  }
  return usages;
}

/// As the runtime listed its containers last. A pod that is not listed runs: its processes are how it was found.
std::vector<bool> PodUsageReader::running(const core::PodList& pods) const {
  std::set<std::string_view> idle;
  for (const auto& pod : pods_.runtime_pods())
    if (std::ranges::none_of(pod->containers, [](const pods::RuntimeContainer& container) {
          return container.state == pods::ContainerState::Running || container.state == pods::ContainerState::Unknown;
        }))
      idle.insert(pod->pod->uid);
  std::vector<bool> result;
  result.reserve(pods.size());
  for (const auto& pod : pods) result.push_back(!idle.contains(pod->uid));
  return result;
}

PodUsages PodUsageReader::known_disk(const core::PodList& pods) const {
  PodUsages usages;
  usages.reserve(pods.size());
  for (const auto& pod : pods) usages.push_back(disk_usage(*pod, disk_.known(pod->uid).get()));
  return usages;
}

std::optional<core::PodUsage> PodUsageReader::disk_usage(const core::Pod& pod,
                                                         const node::PodDiskReading* reading) const {
  const auto runtime_pod = pods_.find(pod.uid);
  if (!reading || !runtime_pod) return std::nullopt;
  core::PodUsage usage;
  usage.volumes = reading->volumes;
  // All attempts of a container share the directory of its logs.
  for (const auto* container : pods::current_containers(*runtime_pod))
    usage.containers.push_back({.name = container->name,
                                .rootfs = layer_of(*reading, layers_, container->id),
                                .logs = find_or_nothing(reading->logs, container->name)});
  usage.ephemeral = ephemeral_bytes(pod, usage, reading->pod_level);
  return usage;
}

std::vector<bool> PodUsageReader::out_of_reach(const core::PodList& pods) const {
  std::vector<bool> result;
  result.reserve(pods.size());
  for (const auto& pod : pods) result.push_back(disk_.is_out_of_reach(pod->uid));
  return result;
}

boost::asio::awaitable<void> PodUsageReader::measure_disk(core::PodListPtr pods, Layers layers) {
  if (auto told = co_await pods::layer_usage(runtime_))
    layers_ = *std::move(told);
  else
    os::log_warning("{}", told.error().message);
  // There is time for so many walks: those come first that are known to hold the most.
  const node::PodDiskReading nothing;
  std::multimap<std::int64_t, node::PodName, std::greater<>> by_bytes;
  for (const auto& pod : *pods) {
    node::PodName name{pod->uid, pod->name_space, pod->name};
    const auto runtime_pod = layers == Layers::walked ? pods_.find(pod->uid) : nullptr;
    if (runtime_pod)
      for (const auto* container : pods::current_containers(*runtime_pod)) name.containers.push_back(container->id);
    const auto reading = disk_.known(pod->uid);
    const auto usage = disk_usage(*pod, reading ? reading.get() : &nothing);
    by_bytes.emplace(usage ? usage->ephemeral.value_or(0) : 0, std::move(name));
  }
  const auto in_order = std::views::values(by_bytes);
  const std::vector<node::PodName> names(in_order.begin(), in_order.end());
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
  os::log_warning("pod {}/{}: not all of its files could be counted{}; it counts with those that were", pod.name_space,
                  pod.name, reading->error ? ": " + reading->error->message : " in time");
}

core::PodUsage PodUsageReader::with_containers(const core::Pod& pod, core::PodUsage usage) const {
  const auto runtime_pod = pods_.find(pod.uid);
  const auto memory = cgroups_.memory(pod.uid);
  if (!runtime_pod || !memory) return usage;
  for (const auto& container : runtime_pod->containers)
    if (const auto working_set = memory->working_set_of(container.cgroup))
      usage.containers.push_back({.name = container.name, .working_set = *working_set});
  return usage;
}

std::int64_t PodUsageReader::held(std::string_view uid) const { return cgroups_.usage(uid).value_or(0); }

std::optional<std::int64_t> PodUsageReader::coming_back(const pods::RuntimePod& pod) const {
  return agent::coming_back(cgroups_, pod);
}

std::int64_t PodUsageReader::held_by_tmpfs(std::string_view uid) const { return agent::held_by_tmpfs(cgroups_, uid); }

std::optional<std::int64_t> PodUsageReader::task_count(std::string_view uid) const {
  return value_or_none(cgroups_.task_count(uid));
}

}  // namespace evictd::agent
