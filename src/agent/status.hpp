#pragma once
#include "agent/alarms.hpp"
#include "agent/eviction_records.hpp"
#include "agent/evictions.hpp"
#include "agent/node_reports.hpp"
#include "agent/recorder.hpp"
#include "agent/runtime_watch.hpp"
#include "agent/usage.hpp"
#include "core/duration.hpp"
#include "core/synchronizer.hpp"
#include "cri/client.hpp"
#include "kube/reporter.hpp"
#include "node/node_disk.hpp"
#include "pods/catalog.hpp"
#include "pods/cri_pods.hpp"

namespace evictd::v1 {
class NodeStatus;
}

namespace evictd::agent {

/// What GetNodeStatus tells of the agent. On the reactor.
struct StatusParts {
  const core::Synchronizer& synchronizer;
  NodeReports& reports;
  const Evictions& evictions;
  const EvictionRecords& records;
  const Usage& usage;
  const Alarms& alarms;
  const Recorder& recorder;
  const RuntimeWatch& runtime_watch;
  const cri::Client& runtime;
  const pods::CriPods& pods;
  const pods::Catalog& catalog;
  node::NodeDisk& disk;
  const kube::Reporter* cluster = nullptr;  ///< null: no API server is told anything
};

/// The composition root adds what only it knows, and `dry_run`. The node's counters are read anew (30 µs), the disks
/// for the one who asks next; no pass begins because of them.
[[nodiscard]] v1::NodeStatus describe_status(const StatusParts& parts, core::Instant now);

}  // namespace evictd::agent
