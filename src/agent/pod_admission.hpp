#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "admission/chain.hpp"
#include "admission/node_snapshot.hpp"
#include "admission/pod_allocation.hpp"
#include "agent/evictions.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/recorder.hpp"
#include "api/admission_requests.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "pods/catalog.hpp"

namespace evictd::agent {

/// The node that pods are to run on. On the reactor.
class AdmittingNode {
 public:
  AdmittingNode() = default;
  AdmittingNode(const AdmittingNode&) = delete;
  AdmittingNode& operator=(const AdmittingNode&) = delete;
  virtual ~AdmittingNode() = default;

  /// As it is now, but for its allocations.
  [[nodiscard]] virtual admission::NodeSnapshot snapshot() const = 0;
  /// Saves what pods were given. Called whenever that has changed.
  virtual void save(const admission::Allocations& allocations) = 0;
};

/// Answers whether pods may run on this node, and keeps account of what those are given that may. On the reactor.
///
/// What is taken account of are the pods that the runtime lists, those that are terminating too until their eviction
/// has ended, and those that were admitted lately and are not listed yet. (kubelet 1.36: filterOutInactivePods)
class PodAdmission final : private PodListener {
 public:
  /// All of these must outlive this.
  struct Parts {
    PodTracker& pods;
    Evictions& evictions;
    pods::Catalog& catalog;
    Recorder& recorder;
    admission::Chain chain;
    AdmittingNode& node;
  };

  /// `allocations`: what pods were given before a restart.
  PodAdmission(Parts parts, admission::Allocations allocations);

  /// One answer for each pod, each asked about beside those before it that were admitted. With `reserve` an admission
  /// takes effect: the pod counts from then on, what it was given is its own until it is gone, and whoever has to make
  /// room is being evicted when its answer is there. Without it, the node is the same for all pods: as it was at the
  /// first turn. An error: the runtime has not told its pods yet. The task must not outlive this.
  [[nodiscard]] std::unique_ptr<api::AdmissionTask> admit(api::AdmissionRequestsPtr asked, bool reserve);

  /// What pods have for themselves.
  [[nodiscard]] const admission::Allocations& allocations() const { return allocations_; }

 private:
  /// A pod that may run and has not been seen yet.
  struct Reservation {
    core::PodPtr pod;
    core::Instant until;
  };
  /// What there is beside the pod asked about.
  struct Occupancy {
    core::PodList pods;
    admission::Allocations allocations;
  };

  class Task;

  void pods_changed(const core::PodList& pods) override;
  [[nodiscard]] Occupancy occupancy() const;
  [[nodiscard]] v1::AdmitResponse admit(const api::AdmissionRequest& asked, bool reserve, Occupancy& there,
                                        admission::NodeSnapshot& node);
  [[nodiscard]] core::PodPtr complete(const api::AdmissionRequest& asked) const;
  void reserve(const core::PodPtr& pod, const admission::Decision& decision);
  [[nodiscard]] v1::AdmitResponse describe(const core::Pod& pod, const admission::Decision& decision) const;

  Parts parts_;
  admission::Allocations allocations_;
  std::map<std::string, Reservation, std::less<>> reservations_;  // by uid
};

}  // namespace evictd::agent
