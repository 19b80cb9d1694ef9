#include "app/disarm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <expected>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "app/discovery.hpp"
#include "app/kernel_killer.hpp"
#include "evict/oom_scores.hpp"
#include "host/node_lock.hpp"
#include "node/cgroup.hpp"
#include "node/hold_notes.hpp"
#include "node/node_memory.hpp"
#include "os/log.hpp"
#include "wake/fence.hpp"
#include "wake/pods_high.hpp"

namespace evictd::app {
namespace {

std::string what_was_done(const wake::FenceLook& look, const std::string& pods) {
  if (std::holds_alternative<wake::fence::Respect>(look.step))
    return fmt::format("memory.high of {} is {}, set by someone else: left as it is", pods, *look.before);
  if (look.before) return fmt::format("lifted the fence of {}, which stood at {}", pods, *look.before);
  return fmt::format("{} has no fence", pods);
}

/// Absent: there is no such cgroup.
Result<std::optional<std::string>> lift_fence_of(const std::string& pods, const node::CgroupHierarchy& hierarchy) {
  const auto cgroup = hierarchy.memory(pods);
  if (!cgroup && cgroup.error().is_gone()) return std::nullopt;
  if (!cgroup) return std::unexpected(cgroup.error());
  const auto look = wake::lift_fence(*cgroup);
  if (!look) return std::unexpected(look.error());
  return what_was_done(*look, pods);
}

/// Which of the two kinds an evictd took for the pods' may have been told to it by a kubelet or a runtime, and only its
/// own mark is lifted: so both are looked at. And so is the one in its note, which the configuration may name no more.
Result<std::string> lift_fences(const config::AgentConfiguration& settings, const node::CgroupHierarchy& hierarchy) {
  if (hierarchy.version() == node::CgroupVersion::v1) return "no fence: cgroup v1 has none";
  std::vector<std::string> pods;
  for (auto node = settings.node; const auto& name : pods_cgroup_names(settings.node.pods_cgroup)) {
    node.pods_cgroup = name;
    pods.push_back(node::pods_cgroup(node));
  }
  std::vector<std::string> lines;
  bool failed = false;
  for (const auto& cgroup : wake::noted_cgroups(pods, config::runtime_files(settings).fence)) {
    auto line = lift_fence_of(cgroup, hierarchy);
    failed = failed || !line;
    if (!line)
      lines.push_back(line.error().message);
    else if (*line)
      lines.push_back(**std::move(line));
  }
  if (lines.empty()) return fmt::format("no fence: there is no cgroup {}", pods.front());
  const auto said = fmt::format("{}", fmt::join(lines, "; "));
  if (failed) return fail(said);
  std::error_code gone;
  std::filesystem::remove(config::runtime_files(settings).fence, gone);
  return said;
}

/// Empty: nobody was held.
std::string let_held_go(const config::AgentConfiguration& settings, const node::CgroupHierarchy& hierarchy) {
  const auto count = node::lift_all_holds(hierarchy, node::HoldNotes{config::runtime_files(settings).held});
  if (count == 0) return {};
  return count == 1 ? "let go of one pod that was held" : fmt::format("let go of {} pods that were held", count);
}

/// With what was done besides, whether or not the first succeeded.
Result<std::string> done_besides(const Result<std::string>& first, const std::string& besides) {
  if (besides.empty()) return first;
  if (!first) return fail(fmt::format("{}; {}", first.error().message, besides));
  return fmt::format("{}; {}", *first, besides);
}

Result<std::string> disarm_cgroups(const config::AgentConfiguration& settings) {
  const auto hierarchy = node::CgroupHierarchy::detect(settings.node.cgroup_mount);
  if (!hierarchy) return std::unexpected(hierarchy.error());
  const auto held = let_held_go(settings, *hierarchy);
  return done_besides(lift_fences(settings, *hierarchy), held);
}

}  // namespace

Disarmed disarm(const config::AgentConfiguration& settings) {
  const auto lock = host::NodeLock::take(config::runtime_files(settings).lock, EVICTD_VERSION);
  if (const auto* held = std::get_if<host::NodeLock::Held>(&lock))
    return {.outcome = fail(fmt::format("another evictd guards this node ({}): what it has set is left to it; stop it "
                                        "first, and its unit then does this",
                                        held->holder)),
            .is_guarded = true};
  if (const auto* unusable = std::get_if<host::NodeLock::Unusable>(&lock))
    os::log_warning("{}", unusable->error.message);
  // None of them waits for another to succeed.
  const auto cgroups = disarm_cgroups(settings);
  return {.outcome = done_besides(cgroups, evict::restore_left_oom_scores(oom_score_places(settings)))};
}

bool is_something_left(const config::AgentConfiguration& settings) {
  const auto notes = config::runtime_files(settings);
  return std::ranges::any_of(std::array{notes.fence, notes.held, notes.oom_scores}, [](const auto& note) {
    std::error_code ignored;
    return std::filesystem::exists(note, ignored);
  });
}

}  // namespace evictd::app
