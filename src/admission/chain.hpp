#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/allocation/allocation_settings.hpp"
#include "admission/handler.hpp"
#include "core/error.hpp"

namespace evictd::admission {

/// What the chain decided, and which handler rejected.
struct Decision {
  Verdict verdict;                              ///< with what all handlers together ask for
  std::string_view handler{};                   ///< empty where the pod is admitted; lives as long as the chain
  std::vector<std::string_view> admitted_by{};  ///< the handlers that let it pass, in order
  Operation operation = Operation::Add;
};

/// Asks its handlers in order; the first rejection decides. The message of a rejection is the handler's; a resize that
/// is not infeasible is deferred, whatever the handler's reason. (kubelet 1.36: canAdmitPod)
class Chain {
 public:
  explicit Chain(std::vector<std::unique_ptr<AdmissionHandler>> handlers) : handlers_{std::move(handlers)} {}

  [[nodiscard]] Decision admit(const Attributes& attributes) const;
  /// The names of the handlers that are asked, in order.
  [[nodiscard]] std::vector<std::string_view> names(Operation operation = Operation::Add) const;

 private:
  std::vector<std::unique_ptr<AdmissionHandler>> handlers_;
};

/// What the node's configuration says to the handlers.
struct ChainSettings {
  std::vector<std::string> allowed_unsafe_sysctls{};  ///< names, or prefixes that end in "*"
  AllocationSettings allocation{};
};

/// The handlers in the order of kubelet 1.36.
[[nodiscard]] Result<Chain> kubelet_chain(const ChainSettings& settings = {});

}  // namespace evictd::admission
