#include "admission/declared_features_handler.hpp"

#include <string>

#include "admission/node_snapshot.hpp"
#include "core/pod.hpp"

namespace evictd::admission {
namespace {

constexpr std::string_view user_namespace_on_host_network = "UserNamespacesHostNetworkSupport";

}  // namespace

Verdict DeclaredFeaturesHandler::admit(const Attributes& attributes) {
  const auto& pod = attributes.pod;
  if (!pod.host_network || pod.host_users) return Verdict::admit();
  const auto& node = attributes.node.node;
  if (node && node->declared_features.contains(user_namespace_on_host_network)) return Verdict::admit();
  return Verdict::reject("PodFeatureUnsupported", "Pod requires node features that are not available: " +
                                                      std::string(user_namespace_on_host_network));
}

}  // namespace evictd::admission
