#pragma once
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace v1beta1 {
class RegisterRequest;
}

namespace evictd::devices {

/// What a plugin said to be taken up.
struct Registration {
  std::string resource;  ///< an extended resource: "example.com/gpu"
  std::string endpoint;  ///< the name of its socket in the plugins' directory

  friend bool operator==(const Registration&, const Registration&) = default;
};

/// The name of evictd's own socket in the directory, as plugins know it.
inline constexpr std::string_view registration_socket = "kubelet.sock";

/// Errors are for the plugin, in the kubelet's words where it has any: a version that is not v1beta1, what is no
/// extended resource, and, stricter than the kubelet, what is no name of a socket in the directory.
[[nodiscard]] Result<Registration> read_registration(const ::v1beta1::RegisterRequest& request);

/// Whether pods may ask for it by this name: DOMAIN/NAME that is a qualified name with "requests." before it, not of
/// kubernetes.io. (kubelet: IsExtendedResourceName)
[[nodiscard]] bool is_resource_of_plugins(std::string_view name);

}  // namespace evictd::devices
