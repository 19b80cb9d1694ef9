#include "node/node_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "core/signal.hpp"
#include "os/file_error.hpp"

namespace evictd::node {
namespace {

std::string below(std::string_view root, std::string_view cgroup) {
  return fmt::format("{}{}{}", root, root.ends_with('/') ? "" : "/", cgroup);
}

Error node_error(const os::FileError& error) {
  const auto located = error.in("node.cgroupRoot");
  return error.is_gone() ? Error{located.message + "; create it or correct the key"} : located;
}

RootUsage root_usage(config::MemoryAvailable mode) {
  return mode == config::MemoryAvailable::MemFree ? RootUsage::NotFree : RootUsage::AnonAndFile;
}

core::Observation observation(std::int64_t available, std::int64_t working_set, core::Instant now) {
  return {.available = available, .capacity = available + working_set, .time = now};
}

}  // namespace

std::string pods_cgroup(const config::NodeSettings& settings) {
  return below(settings.cgroup_root, settings.pods_cgroup);
}

NodeMemory::NodeMemory(const CgroupHierarchy& hierarchy, const config::NodeSettings& settings, os::Directory proc,
                       Meminfo machine)
    : hierarchy_(&hierarchy),
      mode_(settings.memory_available),
      proc_(std::move(proc)),
      machine_(std::move(machine)),
      node_{.path = settings.cgroup_root},
      pods_{.path = node::pods_cgroup(settings)} {}

Result<NodeMemory> NodeMemory::open(const CgroupHierarchy& hierarchy, const config::NodeSettings& settings) {
  if (settings.memory_available == config::MemoryAvailable::MemAvailable && settings.cgroup_root != "/")
    return fail(fmt::format("node.memoryAvailable: memAvailable is an estimate for the whole machine, not for \"{}\"",
                            settings.cgroup_root));
  auto proc = os::Directory::open(settings.proc_mount);
  if (!proc) return fail(proc.error(), "node.procMount");
  auto machine = Meminfo::open(*proc);
  if (!machine) return fail(machine.error(), "node.procMount");

  NodeMemory memory(hierarchy, settings, *std::move(proc), *std::move(machine));
  if (const auto reading = memory.read(memory.node_, Limits::read); !reading)
    return std::unexpected(node_error(reading.error()));
  return memory;
}

os::FileResult<MemoryReading> NodeMemory::read(Kept& kept, Limits limits) const {
  if (kept.files) {
    auto reading = limits == Limits::known ? kept.files->read_without_limit() : kept.files->read();
    if (reading && limits == Limits::known) reading->limit = kept.limit;
    if (reading) kept.limit = reading->limit;
    if (reading || !reading.error().is_gone()) return reading;
    kept.files.reset();
  }
  auto opened = MemoryCgroup::open(*hierarchy_, kept.path, root_usage(mode_), proc_);
  if (!opened) return std::unexpected(opened.error());
  kept.files = *std::move(opened);
  ++kept.incarnation;
  auto reading = kept.files->read();
  if (reading) kept.limit = reading->limit;
  return reading;
}

Result<NodeMemoryReading> NodeMemory::read(core::Instant now, Limits limits) {
  const auto node = read(node_, limits);
  if (!node) return std::unexpected(node_error(node.error()));
  const auto machine = read_machine(now);
  if (!machine) return fail(machine.error(), "node.procMount");

  NodeMemoryReading reading{.capacity = std::min(machine->total, node->limit.value_or(machine->total)), .node = *node};
  observe_node(reading, *machine, now);
  observe_pods(reading, limits, now);
  return reading;
}

/// Of the working set's sum only the machine's size matters, which changes when memory is plugged in: /proc/meminfo
/// takes as long as all the rest.
os::FileResult<MachineMemory> NodeMemory::read_machine(core::Instant now) {
  constexpr auto size_lasts = std::chrono::seconds(10);
  if (mode_ != config::MemoryAvailable::MemAvailable && size_ && now - size_read_ < size_lasts) return *size_;
  const auto machine = machine_.read();
  if (machine) size_ = *machine;
  size_read_ = now;
  return machine;
}

void NodeMemory::observe_node(NodeMemoryReading& reading, const MachineMemory& machine, core::Instant now) {
  node_.capacity = reading.capacity;
  const auto& node = reading.node;
  const auto unused =
      mode_ == config::MemoryAvailable::MemAvailable ? machine.available : reading.capacity - node.working_set();
  const auto available = std::clamp<std::int64_t>(unused, 0, reading.capacity);
  const auto taken = mode_ == config::MemoryAvailable::MemAvailable ? reading.capacity - available : node.working_set();
  reading.observations[core::Signal::MemoryAvailable] = observation(available, taken, now);
  reading.node_level = {.capacity = available + taken,
                        .usage = node.usage,
                        .reclaimable = node.usage - taken,
                        .incarnation = node_.incarnation,
                        .follows_usage = mode_ != config::MemoryAvailable::MemAvailable};
}

void NodeMemory::observe_pods(NodeMemoryReading& reading, Limits limits, core::Instant now) {
  pods_.capacity.reset();
  const auto pods = read(pods_, limits);
  if (!pods) {
    if (!pods.error().is_gone()) reading.pods_error = pods.error().in("node.podsCgroup");
    return;
  }
  reading.pods = *pods;
  if (!pods->limit) return;  // nothing to be short of (kubelet: no AvailableBytes)
  pods_.capacity = pods->limit;
  const auto taken = pods->working_set();
  const auto available = std::max<std::int64_t>(0, *pods->limit - taken);
  reading.observations[core::Signal::AllocatableMemoryAvailable] = observation(available, taken, now);
  reading.pods_level = {.capacity = available + taken,
                        .usage = pods->usage,
                        .reclaimable = pods->usage - taken,
                        .incarnation = pods_.incarnation};
}

bool NodeMemory::by_estimate(core::Signal signal) const {
  return signal == core::Signal::MemoryAvailable && mode_ == config::MemoryAvailable::MemAvailable;
}

const NodeMemory::Kept& NodeMemory::kept(core::Signal signal) const {
  return signal == core::Signal::MemoryAvailable ? node_ : pods_;
}

std::span<const core::Signal> NodeMemory::signals() const {
  static constexpr std::array own{core::Signal::MemoryAvailable, core::Signal::AllocatableMemoryAvailable};
  return own;
}

std::optional<std::int64_t> NodeMemory::available(core::Signal signal) const {
  const auto& [path, files, incarnation, limit, capacity] = kept(signal);
  if (!files || !capacity) return std::nullopt;
  if (by_estimate(signal)) {
    const auto machine = machine_.read();
    return machine ? std::optional{std::clamp<std::int64_t>(machine->available, 0, *capacity)} : std::nullopt;
  }
  const auto taken = files->working_set();
  return taken ? std::optional{std::max<std::int64_t>(0, *capacity - *taken)} : std::nullopt;
}

std::optional<std::int64_t> NodeMemory::available_at_least(core::Signal signal) const {
  const auto& [path, files, incarnation, limit, capacity] = kept(signal);
  if (!files || !capacity || by_estimate(signal)) return std::nullopt;
  const auto usage = files->usage();
  return usage ? std::optional{*capacity - *usage} : std::nullopt;
}

std::optional<std::int64_t> NodeMemory::pods_usage() const {
  if (!pods_.files) return std::nullopt;
  const auto usage = pods_.files->usage();
  return usage ? std::optional{*usage} : std::nullopt;
}

}  // namespace evictd::node
