#include "admission/apparmor_handler.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "admission/go_quoted.hpp"
#include "admission/node_snapshot.hpp"
#include "core/pod.hpp"

namespace evictd::admission {
namespace {

constexpr std::string_view annotation_prefix = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view localhost_prefix = "localhost/";
constexpr std::string_view unconfined_annotation = "unconfined";

using Profile = std::optional<core::AppArmorProfile>;

/// What an annotation says; nothing where it is malformed. (kubelet: getProfileFromPodAnnotations)
Profile parse_annotation(std::string_view text) {
  if (text == "runtime/default") return core::AppArmorProfile{.type = "RuntimeDefault"};
  if (text == unconfined_annotation) return core::AppArmorProfile{.type = "Unconfined"};
  if (text.starts_with(localhost_prefix))
    return core::AppArmorProfile{.type = "Localhost",
                                 .localhost_profile = std::string(text.substr(localhost_prefix.size()))};
  return std::nullopt;
}

/// The container's own, else what a well-formed annotation says of it, else the pod's. (kubelet: GetProfile)
Profile profile_of(const core::Pod& pod, const core::Container& container) {
  if (container.app_armor_profile) return container.app_armor_profile;
  const auto annotation = pod.annotations.find(std::string(annotation_prefix) + container.name);
  if (annotation != pod.annotations.end())
    if (auto profile = parse_annotation(annotation->second)) return profile;
  return pod.app_armor_profile;
}

bool confines(const Profile& profile) { return profile && profile->type != "Unconfined"; }

/// Whether any part of the pod is to be confined, even one that no container makes use of. An annotation asks for that
/// even where it is malformed. The kubelet looks at one annotation, whichever comes first; this looks at all of them.
/// (kubelet: isRequired)
bool is_required(const core::Pod& pod) {
  const auto is_confined = [](const core::Container& container) { return confines(container.app_armor_profile); };
  if (confines(pod.app_armor_profile) || std::ranges::any_of(pod.init_containers, is_confined) ||
      std::ranges::any_of(pod.containers, is_confined))
    return true;
  return std::ranges::any_of(pod.annotations, [](const auto& annotation) {
    return annotation.first.starts_with(annotation_prefix) && annotation.second != unconfined_annotation;
  });
}

/// Why the host cannot confine anything; empty where it can.
std::string host_error(const AppArmorSupport& support) {
  return support.enabled ? support.error : "AppArmor is not enabled on the host";
}

/// The profile as Kubernetes' own message prints it.
std::string print(const core::AppArmorProfile& profile) {
  return "&AppArmorProfile{Type:" + profile.type + ",LocalhostProfile:*" + profile.localhost_profile + ",}";
}

/// Only a profile of the host can be wrong: it needs a name. Other types pass, whatever they are.
/// (kubelet: validator.Validate)
std::string profile_error(const Profile& profile) {
  if (!profile || profile->type != "Localhost") return {};
  const bool is_blank = profile->localhost_profile.find_first_not_of(" \t\n\v\f\r") == std::string::npos;
  return is_blank ? "invalid empty AppArmor profile name: " + go_quoted(print(*profile)) : std::string{};
}

std::string error_of(const core::Pod& pod, const AppArmorSupport& support) {
  if (!is_required(pod)) return {};
  if (auto error = host_error(support); !error.empty()) return error;
  for (const auto* containers : {&pod.init_containers, &pod.containers})
    for (const auto& container : *containers)
      if (auto error = profile_error(profile_of(pod, container)); !error.empty()) return error;
  return {};
}

}  // namespace

Verdict AppArmorHandler::admit(const Attributes& attributes) {
  const auto& phase = attributes.pod.phase;
  if (!phase.empty() && phase != "Pending") return Verdict::admit();
  const auto error = error_of(attributes.pod, attributes.node.app_armor);
  return error.empty() ? Verdict::admit() : Verdict::reject("AppArmor", "Cannot enforce AppArmor: " + error);
}

}  // namespace evictd::admission
