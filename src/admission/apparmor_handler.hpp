#pragma once
#include <string_view>

#include "admission/handler.hpp"

namespace evictd::admission {

/// Keeps pods away that are to be confined on a host that cannot confine them, or by a profile of the host without a
/// name. A malformed annotation is passed over. A pod that is past Pending was admitted already.
/// (kubelet 1.36: appArmorAdmitHandler.Admit, security/apparmor)
class AppArmorHandler final : public AdmissionHandler {
 public:
  [[nodiscard]] std::string_view name() const override { return "apparmor"; }
  [[nodiscard]] Verdict admit(const Attributes& attributes) override;
};

}  // namespace evictd::admission
