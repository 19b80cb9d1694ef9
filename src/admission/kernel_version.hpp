#pragma once
#include <compare>
#include <optional>
#include <string_view>

namespace evictd::admission {

/// The part of a kernel's release that decides which features it has.
struct KernelVersion {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const KernelVersion&, const KernelVersion&) = default;
};

/// From a release as uname tells it: "6.1.0-18-amd64", "v5.15". Nothing where it does not begin with two numbers.
/// (kubelet: version.ParseGeneric)
[[nodiscard]] std::optional<KernelVersion> parse_kernel_version(std::string_view release);

}  // namespace evictd::admission
