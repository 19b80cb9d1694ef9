#include "core/signal.hpp"

#include <algorithm>

namespace evictd::core {
namespace {

struct Facts {
  std::string_view name;
  Resource resource;
  NodeCondition condition;
};

using enum Resource;
using enum NodeCondition;

// In the order of `Signal`. (kubelet: signalToNodeCondition, signalToResource)
constexpr std::array<Facts, all_signals.size()> facts{{
    {"memory.available", Memory, MemoryPressure},
    {"allocatableMemory.available", Memory, MemoryPressure},
    {"nodefs.available", EphemeralStorage, DiskPressure},
    {"nodefs.inodesFree", Inodes, DiskPressure},
    {"imagefs.available", EphemeralStorage, DiskPressure},
    {"imagefs.inodesFree", Inodes, DiskPressure},
    {"containerfs.available", EphemeralStorage, DiskPressure},
    {"containerfs.inodesFree", Inodes, DiskPressure},
    {"pid.available", Pids, PidPressure},
}};

}  // namespace

std::string_view name(Signal signal) { return facts[index(signal)].name; }
Resource resource_of(Signal signal) { return facts[index(signal)].resource; }
NodeCondition condition_of(Signal signal) { return facts[index(signal)].condition; }

bool is_disk(Signal signal) { return condition_of(signal) == DiskPressure; }
bool is_counted(Signal signal) { return resource_of(signal) == Inodes || resource_of(signal) == Pids; }

std::string_view name(Resource resource) {
  static constexpr std::array<std::string_view, 4> names{"memory", "ephemeral-storage", "inodes", "pids"};
  return names[static_cast<std::size_t>(resource)];
}

std::string_view name(NodeCondition condition) {
  static constexpr std::array<std::string_view, 3> names{"DiskPressure", "MemoryPressure", "PIDPressure"};
  return names[static_cast<std::size_t>(condition)];
}

std::vector<std::string_view> signal_names() {
  std::vector<std::string_view> names;
  for (const auto signal : all_signals) names.push_back(name(signal));
  return names;
}

std::optional<Signal> parse_signal(std::string_view text) {
  const auto found = std::ranges::find(facts, text, &Facts::name);
  if (found == facts.end()) return std::nullopt;
  return all_signals[static_cast<std::size_t>(found - facts.begin())];
}

}  // namespace evictd::core
