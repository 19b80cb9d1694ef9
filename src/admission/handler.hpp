#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "admission/node_snapshot.hpp"
#include "admission/pod_allocation.hpp"
#include "core/pod.hpp"

namespace evictd::admission {

/// What is asked about. (kubelet 1.36: lifecycle.PodAdmitAttributes.Operation)
enum class Operation : std::uint8_t {
  Add,      ///< the pod is to come
  Resize,   ///< it is there, and its requests and limits are to become these
  Restart,  ///< it is there, and one of its containers is made anew: a kubelet asks nobody, evictd what it is given
};

/// Why a resize is not admitted, as the kubelet writes it into the condition PodResizePending.
inline constexpr std::string_view deferred_resize = "Deferred";      ///< not now
inline constexpr std::string_view infeasible_resize = "Infeasible";  ///< never on this node

/// The question every handler is asked: may this pod run on this node now?
struct Attributes {
  const core::Pod& pod;             ///< as it is to become, where it is resized
  const core::PodList& other_pods;  ///< the active pods of the node without the one asked about
  const NodeSnapshot& node;
  Operation operation = Operation::Add;
  const core::Pod* allocated = nullptr;  ///< where it is resized: as it is; null: it is not there
};

/// A handler's answer. Reason and message of a rejection are what the kubelet writes into the pod's status, to the
/// letter; both are empty where the pod is admitted. Nothing is done yet: what the admission takes, whoever asked has
/// to carry out or to leave.
struct Verdict {
  bool admitted = true;
  std::string reason{};
  std::string message{};
  core::PodList preempted{};   ///< who must go first, for a critical pod
  PodAllocation allocation{};  ///< what its containers are given for themselves

  [[nodiscard]] static Verdict admit() { return {}; }
  [[nodiscard]] static Verdict reject(std::string_view reason, std::string message) {
    return {.admitted = false, .reason = std::string(reason), .message = std::move(message)};
  }

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// One rule of admission. A new one is a file with a class like this and a line in `kubelet_chain`.
class AdmissionHandler {
 public:
  virtual ~AdmissionHandler() = default;

  /// How operators know it: "eviction", "sysctl", …
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Whether it has a say in it.
  [[nodiscard]] virtual bool is_asked(Operation operation) const { return operation != Operation::Restart; }
  [[nodiscard]] virtual Verdict admit(const Attributes& attributes) = 0;
};

}  // namespace evictd::admission
