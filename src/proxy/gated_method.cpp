#include "proxy/gated_method.hpp"

namespace evictd::proxy {

std::optional<GatedMethod> gated_method(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto service = path.substr(0, slash);
  const auto method = path.substr(slash + 1);
  if (service != "runtime.v1.RuntimeService" && service != "runtime.v1alpha2.RuntimeService") return std::nullopt;
  if (method == "RunPodSandbox") return GatedMethod::RunPodSandbox;
  if (method == "CreateContainer") return GatedMethod::CreateContainer;
  if (method == "UpdateContainerResources") return GatedMethod::UpdateContainerResources;
  return std::nullopt;
}

}  // namespace evictd::proxy
