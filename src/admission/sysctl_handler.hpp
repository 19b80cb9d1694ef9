#pragma once
#include <string_view>
#include <utility>

#include "admission/handler.hpp"
#include "admission/sysctl_allowlist.hpp"

namespace evictd::admission {

/// Keeps pods away that would set sysctls that are not allowed, or that belong to a namespace they share with the host.
/// (kubelet: patternAllowlist.Admit; kubelet-spec section 12)
class SysctlHandler final : public AdmissionHandler {
 public:
  explicit SysctlHandler(SysctlAllowlist allowlist) : allowlist_{std::move(allowlist)} {}

  [[nodiscard]] std::string_view name() const override { return "sysctl"; }
  [[nodiscard]] Verdict admit(const Attributes& attributes) override;

 private:
  SysctlAllowlist allowlist_;
};

}  // namespace evictd::admission
