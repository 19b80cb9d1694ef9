#pragma once
#include "agent/eviction_records.hpp"
#include "core/duration.hpp"
#include "evict/eviction_record.hpp"
#include "kube/pod_objects.hpp"
#include "kube/report_queue.hpp"
#include "kube/reporter.hpp"
#include "pods/catalog.hpp"

namespace evictd::v1 {
class ClusterReports;
}

namespace evictd::agent {

/// What the cluster is to learn of an eviction whose containers died at `killed`.
[[nodiscard]] kube::Eviction eviction_report(const evict::EvictionRecord& record, core::Instant killed);

/// Tells the reporter what the API server's watch has of the pods that went.
void compare_statuses(const EvictionRecords& evictions, const pods::Catalog& catalog, kube::Reporter& reporter);

/// How the reports stand, for the API.
[[nodiscard]] v1::ClusterReports describe_reports(const kube::ReportStatus& status);

}  // namespace evictd::agent
