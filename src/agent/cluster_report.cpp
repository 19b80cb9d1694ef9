#include "agent/cluster_report.hpp"

#include <evictd.pb.h>

#include <cstdint>
#include <string>

#include "agent/describe.hpp"
#include "core/action.hpp"
#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/static_pod.hpp"
#include "evict/eviction_record.hpp"
#include "kube/wall_time.hpp"

namespace evictd::agent {
namespace {

/// The kubelet keeps the hash of a static pod's manifest beside its uid; they are the same unless the manifest has a
/// uid of its own.
std::string static_hash(const core::Pod& pod) {
  if (!core::names_static_source(pod)) return {};
  const auto hash = core::annotation(pod, core::config_hash);
  return hash.empty() ? pod.uid : std::string(hash);
}

}  // namespace

kube::Eviction eviction_report(const evict::EvictionRecord& record, core::Instant killed) {
  const auto& pod = *record.pod;
  return {.name_space = pod.name_space,
          .name = pod.name,
          .uid = pod.uid,
          .id = record.id,
          .static_hash = static_hash(pod),
          .message = record.message,
          .disruption = core::disruption_message(record),
          .reason = std::string(core::reason(record.cause)),
          .has_event = record.cause != core::EvictionCause{core::Displacement::NodeShutdown},
          .time = kube::wall_time_of(killed)};
}

void compare_statuses(const EvictionRecords& evictions, const pods::Catalog& catalog, kube::Reporter& reporter) {
  const auto compare = [&](const std::string& uid) {
    if (const auto* pod = catalog.in_cluster(uid)) reporter.seen(uid, pod->phase, pod->reason);
  };
  for (const auto& [uid, record] : evictions.under_way())
    if (record.killed) compare(uid);
  for (const auto& [uid, evicted] : evictions.evicted()) compare(uid);
}

v1::ClusterReports describe_reports(const kube::ReportStatus& status) {
  v1::ClusterReports message;
  message.set_waiting(static_cast<std::uint32_t>(status.waiting));
  if (status.oldest) *message.mutable_oldest() = wall_time(*status.oldest);
  if (status.last_success) *message.mutable_last_success() = wall_time(*status.last_success);
  if (status.last_failure) *message.mutable_last_failure() = wall_time(*status.last_failure);
  message.set_last_error(status.last_error);
  message.set_statuses(status.written.statuses);
  message.set_deletions(status.written.deletions);
  message.set_events(status.written.events);
  message.set_node_updates(status.node_updates);
  message.set_gone(status.written.gone);
  message.set_dropped(status.written.dropped);
  message.set_statuses_again(status.written.statuses_again);
  return message;
}

}  // namespace evictd::agent
