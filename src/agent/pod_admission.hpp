#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "admission/allocation/provider.hpp"
#include "admission/chain.hpp"
#include "admission/node_snapshot.hpp"
#include "admission/pod_allocation.hpp"
#include "agent/admitting_node.hpp"
#include "agent/clock.hpp"
#include "agent/evictions.hpp"
#include "agent/kept_allocations.hpp"
#include "agent/pod_resizes.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/preemptions.hpp"
#include "agent/recorder.hpp"
#include "api/admission_requests.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "devices/plugin_calls.hpp"
#include "pods/catalog.hpp"

namespace evictd::agent {

/// Answers whether pods may run on this node, and keeps account of what those are given that may. On the reactor.
///
/// What is taken account of are the pods that the runtime lists, those that are terminating too until their eviction
/// has ended, and those that were admitted lately and are not listed yet. (kubelet 1.36: filterOutInactivePods) The
/// runtime tells of a container once it is created, long after the pod's sandbox where an image is pulled: until what
/// is told of it asks for as much, a pod that is listed counts with what it was admitted with as well.
///
/// A critical pod is admitted once those that make room for it have ended, and as a kubelet does (preemption.go) also
/// beside one that did not end in time. A kubelet asks about no other pod meanwhile. Here those wait that fit only once
/// the room is made, and beside the pods that wait already; those that fit now are admitted.
///
/// A container that is made anew in a pod that runs and stays is only given what it has: a kubelet's handlers are asked
/// once for a pod, and may object to one that is there.
///
/// A resize has nobody go and waits for nobody. Once it is reserved the pod counts as it is to be, until it is gone or
/// whoever tells of it tells something else of its requests than before. One that is deferred is forgotten: a kubelet
/// would ask again by itself, here whoever wants it does.
class PodAdmission final : private PodListener {
 public:
  /// All of these must outlive this.
  struct Parts {
    boost::asio::any_io_executor reactor;
    PodTracker& pods;
    Evictions& evictions;
    pods::Catalog& catalog;
    Recorder& recorder;
    admission::Chain chain;
    AdmittingNode& node;
    Clock& clock;
    devices::PluginCalls* plugins = nullptr;  ///< null: there are no device plugins
  };

  /// `allocations`: what pods were given before a restart; `coming`: those of them that were awaited then.
  PodAdmission(Parts parts, admission::Allocations allocations, admission::Coming coming = {});

  /// One answer for each pod, each asked about beside those before it that were admitted. With `reserve` an admission
  /// takes effect: the pod counts from then on, what it was given is its own until it is gone, and whoever has to make
  /// room is evicted and has ended when its answer is there; when the task is given up before that, it ends all the
  /// same. Only then do device plugins allocate what the pod was given of theirs; where one fails the pod is rejected,
  /// and what it was given is free again. What was given is written before its pod has its answer
  /// (KeptAllocations::written), or the pod is rejected likewise. Without `reserve`, the node is the same for all pods:
  /// as it was at the first turn, and as it will be when room is made. An error: the runtime has not told its pods yet.
  /// A task that outlives this, as when evictd ends while plugins are asked, may only go.
  [[nodiscard]] std::unique_ptr<api::AdmissionTask> admit(api::AdmissionRequestsPtr asked, bool reserve);

  /// What pods have for themselves.
  [[nodiscard]] const admission::Allocations& allocations() const { return kept_.all(); }
  /// Those of them that no list has named yet.
  [[nodiscard]] const admission::Coming& coming() const { return kept_.coming(); }

 private:
  class Task;

  /// A pod that may run, and of which less is told yet than it was admitted with.
  struct Reservation {
    core::PodPtr pod;
    core::Instant until;
    bool seen = false;  ///< a list has named it
  };
  /// A pod that waits for room, which is nobody else's meanwhile.
  struct Waiting {
    core::PodPtr pod;  ///< null: it does not wait
    admission::PodAllocation allocation;
    core::PodList victims;       ///< all that went for it since it was asked about
    bool changed = false;        ///< since it waits, somebody's end is not awaited any more
    std::function<void()> wake;  ///< may be empty
  };
  /// What was reserved and may be taken back.
  struct Tentative {
    const Task* task;                               ///< by which
    std::optional<Reservation> reservation_before;  ///< nothing: it had none
    admission::PodAllocation allocation_before;
  };
  /// What there is beside the pod asked about.
  struct Occupancy {
    core::PodList now;
    core::PodList pods;  ///< once those have gone that make room, and the pods are here that wait for that
    admission::Allocations allocations;
  };

  void pods_changed(const core::PodList& pods) override;
  void forget_reservations(const core::PodList& pods);
  /// The listed pod as it was admitted; null: it is told of with no less.
  [[nodiscard]] core::PodPtr as_admitted(const core::Pod& listed, const core::PodPtr& admitted) const;
  /// For the one that waits itself, or does not.
  [[nodiscard]] Occupancy occupancy(const Waiting& own) const;
  /// `reserving`: the task for which the admission takes effect; null: it does not. Nothing: the pod waits for room
  /// from now on.
  [[nodiscard]] std::optional<v1::AdmitResponse> admit(const core::PodPtr& pod, admission::Operation operation,
                                                       const Task* reserving, Occupancy& there,
                                                       admission::NodeSnapshot& node, Waiting& waiting);
  [[nodiscard]] admission::Operation operation_for(const core::Pod& pod, const api::AdmissionRequest& asked) const;
  /// The same of a resize, which waits for nobody.
  [[nodiscard]] v1::AdmitResponse resize(const api::AdmissionRequest& asked, Task* reserving, Occupancy& there,
                                         admission::NodeSnapshot& node);
  [[nodiscard]] bool has_room(const core::Pod& pod, const admission::Decision& decision, const Occupancy& there,
                              const admission::NodeSnapshot& node) const;
  void wait_for_room(const core::PodPtr& pod, const admission::Verdict& verdict, Waiting& waiting);
  [[nodiscard]] bool may_go_on(const Waiting& waiting) const;
  void room_changed();
  [[nodiscard]] core::PodPtr complete(const api::AdmissionRequest& asked) const;
  /// Whether the pod is on its way out, or has gone: one that comes under its name is another one.
  [[nodiscard]] bool goes(const std::string& uid) const;
  /// It may be taken back, and then the pod never was admitted.
  [[nodiscard]] bool is_first_admission(const std::string& uid) const;
  void reserve(const core::PodPtr& pod, const admission::PodAllocation& allocation, const Task& task);
  void take_back(const std::string& uid, const Task& task);
  void take_all_back(const Task& task);
  /// What the pod has now that the plugins did their part, or why they did not.
  [[nodiscard]] boost::asio::awaitable<std::expected<admission::PodAllocation, admission::Refusal>> give_devices(
      core::PodPtr pod, const api::AdmissionRequest& asked);
  /// A rejection of one that its handlers let pass.
  [[nodiscard]] v1::AdmitResponse refuse(const core::Pod& pod, const admission::Refusal& refusal,
                                         const core::PodList& preempted) const;
  [[nodiscard]] v1::AdmitResponse describe(const core::Pod& pod, const admission::Decision& decision) const;

  Parts parts_;
  KeptAllocations kept_;
  std::map<std::string, Reservation, std::less<>> reservations_;  // by uid
  std::map<std::string, Tentative, std::less<>> tentative_;       // by uid
  PodResizes resizes_;
  std::vector<Waiting*> waiting_;                  // of the tasks, the first that waits first
  std::set<std::string, std::less<>> at_plugins_;  // uids of pods whose devices are being allocated
  Preemptions preemptions_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // a task may outlive this
};

}  // namespace evictd::agent
