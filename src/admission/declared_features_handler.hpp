#pragma once
#include <string_view>

#include "admission/handler.hpp"

namespace evictd::admission {

/// Keeps pods away that need a feature which the node does not declare. The one that a pod can need is
/// UserNamespacesHostNetworkSupport, for a user namespace of its own on the node's network; kubelets of 1.36 declare it
/// only where its gate, off by default, is on. (kubelet 1.36: declaredFeaturesAdmitHandler.Admit, component-helpers
/// nodedeclaredfeatures)
class DeclaredFeaturesHandler final : public AdmissionHandler {
 public:
  [[nodiscard]] std::string_view name() const override { return "features"; }
  [[nodiscard]] Verdict admit(const Attributes& attributes) override;
};

}  // namespace evictd::admission
