#pragma once
#include <string_view>

#include "admission/handler.hpp"

namespace evictd::admission {

/// Keeps pods away from a node under pressure: every pod but critical ones, except that memory pressure alone still
/// lets in pods that asked for something or tolerate it. (kubelet: managerImpl.Admit; kubelet-spec section 11)
class EvictionHandler final : public AdmissionHandler {
 public:
  [[nodiscard]] std::string_view name() const override { return "eviction"; }
  [[nodiscard]] Verdict admit(const Attributes& attributes) override;
};

}  // namespace evictd::admission
