#include "node/node_pids.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "os/directory.hpp"
#include "os/file_error.hpp"
#include "os/numbers.hpp"

namespace evictd::node {
namespace {

/// The tasks of "0.20 0.18 0.12 1/80 11206": the number behind the slash.
os::FileResult<std::int64_t> read_tasks(const os::KeptFile& loadavg) {
  std::array<char, 256> buffer;
  const auto line = loadavg.read(buffer);
  if (!line) return std::unexpected(line.error());
  if (const auto slash = line->find('/'); slash != std::string_view::npos)
    if (const auto tasks = os::parse_number(line->substr(slash + 1), false)) return *tasks;
  return std::unexpected(os::content_error(loadavg.path(), "no number of tasks behind \"/\""));
}

}  // namespace

Result<NodePids> NodePids::open(const CgroupHierarchy& hierarchy, const config::NodeSettings& settings) {
  const auto proc = os::Directory::open(settings.proc_mount);
  if (!proc) return fail(proc.error(), "node.procMount");
  auto pid_max = proc->file("sys/kernel/pid_max");
  if (!pid_max) return fail(pid_max.error(), "node.procMount");
  auto threads_max = proc->file("sys/kernel/threads-max");
  if (!threads_max) return fail(threads_max.error(), "node.procMount");
  auto loadavg = proc->file("loadavg");
  if (!loadavg) return fail(loadavg.error(), "node.procMount");
  return NodePids(hierarchy, settings.cgroup_root, {*std::move(pid_max), *std::move(threads_max), *std::move(loadavg)});
}

os::FileResult<NodePids::Count> NodePids::count_machine() const {
  const auto pid_max = machine_.pid_max.read_number();
  if (!pid_max) return std::unexpected(pid_max.error());
  const auto threads_max = machine_.threads_max.read_number();
  if (!threads_max) return std::unexpected(threads_max.error());
  const auto tasks = read_tasks(machine_.loadavg);
  if (!tasks) return std::unexpected(tasks.error());
  return Count{.running = *tasks, .capacity = std::min(*pid_max, *threads_max)};
}

void NodePids::open_cgroup() {
  const auto directory = hierarchy_->pids(path_);
  if (!directory) return;
  auto limit = directory->file("pids.max");
  auto current = directory->file("pids.current");
  if (limit && current) cgroup_ = Cgroup{*std::move(limit), *std::move(current)};
}

os::FileResult<std::optional<NodePids::Count>> NodePids::count(const Cgroup& cgroup) {
  const auto limit = cgroup.limit.read_limit();
  if (!limit) return std::unexpected(limit.error());
  if (!*limit) return std::nullopt;
  const auto running = cgroup.current.read_number();
  if (!running) return std::unexpected(running.error());
  return Count{.running = *running, .capacity = **limit};
}

const NodePids::Count& NodePids::scarcer(const Count& machine, const std::optional<Count>& cgroup) {
  return cgroup && cgroup->capacity < machine.capacity ? *cgroup : machine;
}

os::FileResult<std::optional<NodePids::Count>> NodePids::count_cgroup() {
  // A cgroup made anew under the same name is found by the second round.
  for (int round = 0; round < 2; ++round) {
    if (!cgroup_) open_cgroup();
    if (!cgroup_) return std::nullopt;
    auto counted = count(*cgroup_);
    if (counted || !counted.error().is_gone()) return counted;
    cgroup_.reset();
  }
  return std::nullopt;
}

std::span<const core::Signal> NodePids::signals() const {
  static constexpr std::array own{core::Signal::PidAvailable};
  return own;
}

std::vector<Error> NodePids::observe(core::Observations& observations, core::Instant now) {
  auto& slot = observations[core::Signal::PidAvailable];
  slot.reset();
  const auto observation = read(now);
  if (!observation) return {observation.error()};
  slot = *observation;
  return {};
}

Result<core::Observation> NodePids::read(core::Instant now) {
  const auto machine = count_machine();
  if (!machine) return fail(machine.error(), "node.procMount");
  const auto cgroup = count_cgroup();
  if (!cgroup) return fail(cgroup.error(), "node.cgroupRoot");
  const auto& [running, capacity] = scarcer(*machine, *cgroup);
  return core::Observation{.available = capacity - running, .capacity = capacity, .time = now};
}

std::optional<std::int64_t> NodePids::available(core::Signal /*signal*/) const {
  const auto machine = count_machine();
  if (!machine) return std::nullopt;
  const auto cgroup = cgroup_ ? count(*cgroup_) : os::FileResult<std::optional<Count>>{};
  if (!cgroup) return std::nullopt;
  const auto& [running, capacity] = scarcer(*machine, *cgroup);
  return capacity - running;
}

}  // namespace evictd::node
