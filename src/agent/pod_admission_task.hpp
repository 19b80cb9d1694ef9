#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "admission/node_snapshot.hpp"
#include "admission/plugin_devices.hpp"
#include "agent/pod_admission.hpp"
#include "agent/pod_devices.hpp"
#include "agent/pod_resizes.hpp"
#include "api/admission_requests.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::agent {

/// One question about pods, over several turns of the reactor: which pod is next, what it waits for, and what is to be
/// taken back if the question goes before its answer. What is decided is PodAdmission's affair.
///
/// Between two turns others may have been given something. What was decided with `reserve` is in the next look at the
/// node; without it nothing takes effect, and so one look is enough.
class PodAdmission::Task final : public api::AdmissionTask {
 public:
  Task(PodAdmission& admission, api::AdmissionRequestsPtr asked, bool reserve);
  ~Task() override;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  [[nodiscard]] bool asks_others() const override;
  [[nodiscard]] boost::asio::awaitable<void> prepare(const api::Departure& departure) override;
  [[nodiscard]] Result<std::vector<v1::AdmitResponse>> decide_some() override;
  void when_room(std::function<void()> wake) override;
  [[nodiscard]] boost::asio::awaitable<void> carry_out(std::vector<v1::AdmitResponse>& decided) override;
  [[nodiscard]] bool has_to_save() const override { return !unwritten().empty(); }
  [[nodiscard]] boost::asio::awaitable<void> save(std::vector<v1::AdmitResponse>& answers) override;
  void keep() override;

  /// A resize that was reserved: it is taken back with this, unless keep() comes before.
  void added(PodResizes::Added resize) { added_.push_back(std::move(resize)); }

 private:
  /// Then pods are decided one by one, since each may be rejected after all.
  [[nodiscard]] bool asks_plugins() const { return reserve_ && admission_.parts_.plugins != nullptr; }
  [[nodiscard]] core::PodPtr next_pod() const { return admission_.complete((*asked_)[next_]); }
  [[nodiscard]] admission::Operation operation_for(const core::Pod& pod) const {
    return admission_.operation_for(pod, (*asked_)[next_]);
  }
  [[nodiscard]] bool may_go_on() const { return waiting_.pod == nullptr || admission_.may_go_on(waiting_); }
  /// What the next decision would hang on, were it made now.
  [[nodiscard]] std::optional<admission::DeviceQuestion> open_question();
  /// Nothing: the pod waits.
  [[nodiscard]] std::optional<v1::AdmitResponse> decide();
  void look();
  void wait_no_more();

  /// A pod that takes effect.
  struct Admitted {
    std::size_t place;  ///< among those asked about
    core::PodPtr pod;
    core::PodList preempted;
  };
  /// Those that would lose what they were given, were evictd killed now.
  [[nodiscard]] std::vector<Admitted> unwritten() const;

  PodAdmission& admission_;
  std::weak_ptr<bool> alive_;  // the admission is
  api::AdmissionRequestsPtr asked_;
  bool reserve_;
  std::size_t next_ = 0;
  std::optional<Occupancy> there_;
  admission::NodeSnapshot node_;
  Waiting waiting_;
  DeviceWishes wishes_{nullptr};          // of the next pod
  core::PodPtr pod_;                      // decided on last; null: it was about a resize, in which plugins have no part
  core::PodList preempted_;               // for that one
  std::vector<Admitted> admitted_;        // with `reserve`
  std::vector<PodResizes::Added> added_;  // that may be taken back
};

}  // namespace evictd::agent
