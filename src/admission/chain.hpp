#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "admission/handler.hpp"

namespace evictd::admission {

/// What the chain decided, and which handler rejected.
struct Decision {
  Verdict verdict;
  std::string_view handler{};  ///< empty where the pod is admitted; lives as long as the chain
};

/// Asks its handlers in order; the first rejection decides.
class Chain {
 public:
  explicit Chain(std::vector<std::unique_ptr<AdmissionHandler>> handlers) : handlers_{std::move(handlers)} {}

  [[nodiscard]] Decision admit(const Attributes& attributes) const;

 private:
  std::vector<std::unique_ptr<AdmissionHandler>> handlers_;
};

/// The handlers in the kubelet's order (kubelet-spec section 12).
[[nodiscard]] Chain kubelet_chain();

}  // namespace evictd::admission
