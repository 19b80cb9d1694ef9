#include "agent/eviction_audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string>

#include "core/action.hpp"
#include "core/ranked_pod.hpp"
#include "evict/eviction_record.hpp"

namespace evictd::agent {
namespace {

/// "default/hog usage=524288000 request=104857600 priority=0; …"
std::string ranking_line(const std::vector<core::RankedPod>& ranking) {
  std::string line;
  for (const auto& ranked : ranking)
    line += fmt::format("{}{} usage={} request={} priority={}", line.empty() ? "" : "; ", ranked.pod->key(),
                        ranked.usage, ranked.request, ranked.pod->priority.value_or(0));
  return line;
}

/// "anon=104857600 file=4096 shmem=0"
std::string held_line(const node::PodMemorySnapshot& snapshot) {
  std::string line;
  for (const auto& row : snapshot.rows) line += fmt::format("{}{}={}", line.empty() ? "" : " ", row.name, row.bytes);
  return line;
}

/// "postgres=104857600; sh=1048576"
std::string processes_line(const node::PodMemorySnapshot& snapshot) {
  std::string line;
  for (const auto& process : snapshot.processes)
    line += fmt::format("{}{}={}", line.empty() ? "" : "; ", process.command, process.resident);
  return line;
}

/// "first_release" → "EVICTD_STAGE_FIRST_RELEASE_USEC"
std::string stage_field(std::string_view stage) {
  std::string name(stage);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return "EVICTD_STAGE_" + name + "_USEC";
}

}  // namespace

std::vector<os::JournalField> eviction_fields(const evict::EvictionRecord& record, std::string_view outcome) {
  std::vector<os::JournalField> fields{
      {"MESSAGE_ID", std::string(eviction_message_id)},
      {"EVICTD_EVICTION", std::to_string(record.id)},
      {"EVICTD_POD", record.pod->key()},
      {"EVICTD_POD_UID", record.pod->uid},
      {"EVICTD_REASON", std::string(core::reason(record.cause))},
      {"EVICTD_SIGNAL", std::string(core::name(record.cause))},
      {"EVICTD_WAKE_SOURCE", std::string(core::name(record.turn.wake.source()))},
      {"EVICTD_GRACE_PERIOD_SEC", std::to_string(std::chrono::ceil<std::chrono::seconds>(record.grace_period).count())},
      {"EVICTD_RANKING", ranking_line(record.ranking)},
      {"EVICTD_OUTCOME", std::string(outcome)},
  };
  if (record.acted) {
    const auto& [threshold, observation] = *record.acted;
    fields.emplace_back("EVICTD_AVAILABLE", std::to_string(observation.available));
    fields.emplace_back("EVICTD_CAPACITY", std::to_string(observation.capacity));
    fields.emplace_back("EVICTD_THRESHOLD", core::to_string(threshold));
  }
  if (record.snapshot != nullptr) {
    fields.emplace_back("EVICTD_HELD", held_line(*record.snapshot));
    fields.emplace_back("EVICTD_HELD_PROCESSES", processes_line(*record.snapshot));
  }
  for (const auto stage : core::stages_by_name())
    if (const auto time = record.turn.stages[stage])
      fields.emplace_back(stage_field(core::name(stage)),
                          std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(*time).count()));
  return fields;
}

}  // namespace evictd::agent
