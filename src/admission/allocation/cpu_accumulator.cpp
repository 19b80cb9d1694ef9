#include "admission/allocation/cpu_accumulator.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "admission/pod_allocation.hpp"

namespace evictd::admission {
namespace {

constexpr auto socket = &LogicalCpu::socket;
constexpr auto numa = &LogicalCpu::numa_node;
constexpr auto cache = &LogicalCpu::uncore_cache;
constexpr auto core = &LogicalCpu::core;

int count_distinct(const std::vector<LogicalCpu>& cpus, int LogicalCpu::* level) {
  std::set<int> ids;
  for (const auto& cpu : cpus) ids.insert(cpu.*level);
  return static_cast<int>(ids.size());
}

std::map<int, int> sizes(const std::vector<LogicalCpu>& cpus, int LogicalCpu::* level) {
  std::map<int, int> result;
  for (const auto& cpu : cpus) ++result[cpu.*level];
  return result;
}

}  // namespace

CpuAccumulator::CpuAccumulator(const MachineTopology& machine, const CpuSet& free, int needed)
    : machine_(machine), needed_(needed) {
  for (const auto& cpu : machine.cpus)
    if (free.contains(cpu.id)) free_.push_back(cpu);
  if (machine.cpus.empty()) return;
  threads_per_core_ = static_cast<int>(machine.cpus.size()) / count_distinct(machine.cpus, core);
  numa_above_sockets_ = count_distinct(machine.cpus, socket) >= count_distinct(machine.cpus, numa);
}

void CpuAccumulator::take(const CpuSet& cpus) {
  taken_.insert(cpus.begin(), cpus.end());
  std::erase_if(free_, [&](const LogicalCpu& cpu) { return cpus.contains(cpu.id); });
  needed_ -= static_cast<int>(cpus.size());
}

CpuSet CpuAccumulator::free_at(Level level, int id) const {
  CpuSet result;
  for (const auto& cpu : free_)
    if (cpu.*level == id) result.insert(result.end(), cpu.id);
  return result;
}

CpuSet CpuAccumulator::free_in(int numa_node) const { return free_at(numa, numa_node); }

bool CpuAccumulator::is_whole(Level level, int id) const {
  const auto has_it = [&](const LogicalCpu& cpu) { return cpu.*level == id; };
  return std::ranges::count_if(free_, has_it) == std::ranges::count_if(machine_.cpus, has_it);
}

/// The ids at the last level of the path that have free CPUs: grouped by the levels before it, in each of which those
/// with the fewest free CPUs come first, the lower id among equals.
std::vector<int> CpuAccumulator::sorted(std::span<const Level> path) const {
  std::vector<int> result;
  descend(path, free_, result);
  return result;
}

void CpuAccumulator::descend(std::span<const Level> path, const std::vector<LogicalCpu>& within,
                             std::vector<int>& result) const {
  const auto level = path.front();
  std::vector<std::pair<int, int>> by_size;  // free CPUs, id
  for (const auto& [id, size] : sizes(within, level)) by_size.emplace_back(size, id);
  std::ranges::sort(by_size);
  for (const auto& [size, id] : by_size) {
    if (path.size() == 1) {
      if (std::ranges::find(result, id) == result.end()) result.push_back(id);
      continue;
    }
    std::vector<LogicalCpu> inside;
    for (const auto& cpu : within)
      if (cpu.*level == id) inside.push_back(cpu);
    descend(path.subspan(1), inside, result);
  }
}

void CpuAccumulator::take_whole(std::span<const Level> path) {
  const auto level = path.back();
  std::vector<int> whole = sorted(path);
  std::erase_if(whole, [&](int id) { return !is_whole(level, id); });
  for (const int id : whole) {
    const auto cpus = free_at(level, id);
    if (needed_ >= static_cast<int>(cpus.size()) && !cpus.empty()) take(cpus);
  }
}

void CpuAccumulator::take_whole_numa_nodes_and_sockets() {
  if (numa_above_sockets_) {
    take_whole(std::array{numa});
    if (!is_satisfied()) take_whole(std::array{numa, socket});
  } else {
    take_whole(std::array{socket});
    if (!is_satisfied()) take_whole(std::array{socket, numa});
  }
}

void CpuAccumulator::take_whole_cores() {
  if (numa_above_sockets_)
    take_whole(std::array{numa, socket, core});
  else
    take_whole(std::array{socket, numa, core});
}

void CpuAccumulator::take_uncore_caches() {
  const auto path = numa_above_sockets_ ? std::vector{numa, cache} : std::vector{socket, numa, cache};
  const auto caches = count_distinct(machine_.cpus, cache);
  const auto cpus_per_cache = static_cast<int>(machine_.cpus.size()) / caches;
  for (const int id : sorted(path)) {
    if (needed_ >= cpus_per_cache) take_whole(path);
    if (is_satisfied()) return;
    take_part_of_cache(id);
    if (is_satisfied()) return;
  }
}

/// All that is still needed from one cache, or nothing. (kubelet: takePartialUncore)
void CpuAccumulator::take_part_of_cache(int id) {
  std::set<int> cores;
  for (const auto& cpu : free_)
    if (cpu.uncore_cache == id) cores.insert(cpu.core);
  const auto cores_needed = static_cast<std::size_t>((needed_ + threads_per_core_ - 1) / threads_per_core_);
  while (cores.size() > cores_needed) cores.erase(std::prev(cores.end()));

  CpuSet cpus;
  for (const auto& cpu : free_)
    if (cores.contains(cpu.core)) cpus.insert(cpu.id);
  // Of the last core only one thread is needed.
  const bool odd = threads_per_core_ > 1 && needed_ % 2 != 0;
  if (odd && static_cast<int>(cpus.size()) > needed_) cpus.erase(std::prev(cpus.end()));
  if (static_cast<int>(cpus.size()) == needed_) take(cpus);
}

void CpuAccumulator::take_threads(bool spread) {
  std::vector<int> order;
  const auto add_all_of = [&](Level level, int id) {
    const auto cpus = free_at(level, id);
    order.insert(order.end(), cpus.begin(), cpus.end());
  };
  if (spread) {
    for (const int id : numa_above_sockets_ ? sorted(std::array{numa, socket}) : sorted(std::array{socket}))
      add_all_of(socket, id);
  } else {
    for (const int id :
         numa_above_sockets_ ? sorted(std::array{numa, socket, core}) : sorted(std::array{socket, numa, core}))
      add_all_of(core, id);
  }
  for (const int cpu : order) {
    if (is_satisfied()) return;
    take({cpu});
  }
}

std::vector<int> CpuAccumulator::numa_nodes() const {
  return numa_above_sockets_ ? sorted(std::array{numa}) : sorted(std::array{socket, numa});
}

}  // namespace evictd::admission
