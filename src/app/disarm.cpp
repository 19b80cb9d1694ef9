#include "app/disarm.hpp"

#include <fmt/format.h>

#include <expected>
#include <filesystem>
#include <system_error>
#include <variant>

#include "node/cgroup.hpp"
#include "node/node_memory.hpp"
#include "wake/fence.hpp"

namespace evictd::app {
namespace {

std::string what_was_done(const wake::FenceLook& look, const std::string& pods) {
  if (std::holds_alternative<wake::fence::Respect>(look.step))
    return fmt::format("memory.high of {} is {}, set by someone else: left as it is", pods, *look.before);
  if (look.before) return fmt::format("lifted the fence of {}, which stood at {}", pods, *look.before);
  return fmt::format("{} has no fence", pods);
}

}  // namespace

Result<std::string> disarm(const config::AgentConfiguration& settings) {
  const auto hierarchy = node::CgroupHierarchy::detect(settings.node.cgroup_mount);
  if (!hierarchy) return std::unexpected(hierarchy.error());
  if (hierarchy->version() == node::CgroupVersion::v1) return "no fence: cgroup v1 has none";
  const auto pods = node::pods_cgroup(settings.node);
  const auto cgroup = hierarchy->memory(pods);
  if (!cgroup && cgroup.error().is_gone()) return fmt::format("no fence: there is no cgroup {}", pods);
  if (!cgroup) return std::unexpected(cgroup.error());
  const auto look = wake::lift_fence(*cgroup);
  if (!look) return std::unexpected(look.error());
  std::error_code gone;
  std::filesystem::remove(config::runtime_files(settings).fence, gone);
  return what_was_done(*look, pods);
}

}  // namespace evictd::app
