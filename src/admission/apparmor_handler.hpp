#pragma once
#include <string_view>

#include "admission/handler.hpp"

namespace evictd::admission {

/// Keeps pods away that are to be confined by a profile which is malformed, or on a host that cannot confine them.
/// A pod that is past Pending was admitted already. (kubelet: appArmorAdmitHandler.Admit; kubelet-spec section 17)
class AppArmorHandler final : public AdmissionHandler {
 public:
  [[nodiscard]] std::string_view name() const override { return "apparmor"; }
  [[nodiscard]] Verdict admit(const Attributes& attributes) override;
};

}  // namespace evictd::admission
