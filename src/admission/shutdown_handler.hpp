#pragma once
#include <string_view>

#include "admission/handler.hpp"

namespace evictd::admission {

/// Keeps every pod away, critical ones too, from a node that is shutting down. (kubelet: nodeshutdown
/// managerImpl.Admit; kubelet-spec section 18)
class ShutdownHandler final : public AdmissionHandler {
 public:
  [[nodiscard]] std::string_view name() const override { return "shutdown"; }
  [[nodiscard]] Verdict admit(const Attributes& attributes) override;
};

}  // namespace evictd::admission
