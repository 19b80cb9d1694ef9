#include "core/wake.hpp"

#include <algorithm>
#include <utility>

namespace evictd::core {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(WakeSource::Other) + 1> source_names{
    "memcg",           "psi",      "sampler",    "memory.events", "oom",    "kernel-oom", "fence",         "tripwire",
    "cgroups",         "files",    "self-test",  "turns",         "timer",  "deadline",   "configuration", "drop-ins",
    "drop-ins' place", "kubelet",  "thresholds", "manifests",     "images", "runtime",    "pods",          "disk",
    "start",           "stop",     "restart",    "followup",      "killed", "released",   "cleanup",       "dry-run",
    "preemption",      "shutdown", "trimmed",    "other"};

constexpr std::array<std::string_view, static_cast<std::size_t>(Stage::Cleanup) + 1> stage_names{
    "observed", "measured", "reclaimed", "decided", "killed", "first_release", "released", "cleanup"};

/// The value whose name is at that place of the table.
template <class Value>
std::optional<Value> parse(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Value>(found - names.begin());
}

}  // namespace

void add_reason(std::vector<WakeReason>& reasons, WakeReason reason) {
  const auto known = std::ranges::find_if(
      reasons, [&](const WakeReason& one) { return one.source == reason.source && one.detail == reason.detail; });
  if (known == reasons.end()) return reasons.push_back(std::move(reason));
  known->time = std::min(known->time, reason.time);
  known->latest = std::max(known->latest, reason.latest);
}

std::string_view name(WakeSource source) { return source_names[static_cast<std::size_t>(source)]; }
std::optional<WakeSource> parse_wake_source(std::string_view name) { return parse<WakeSource>(source_names, name); }

std::string_view name(Stage stage) { return stage_names[static_cast<std::size_t>(stage)]; }
std::optional<Stage> parse_stage(std::string_view name) { return parse<Stage>(stage_names, name); }

std::span<const Stage> stages_by_name() {
  using enum Stage;
  static constexpr std::array stages{Cleanup, Decided, FirstRelease, Killed, Measured, Observed, Reclaimed, Released};
  return stages;
}

}  // namespace evictd::core
