#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/pod.hpp"
#include "pods/spec_source.hpp"

// Whose word makes a pod critical. What the runtime lists of a pod, its annotations and labels, is the text of whoever
// asked for it: a kubelet hands on what a user wrote. A spec that somebody in charge of the node gives is believed
// whatever the namespace. Pure.
namespace evictd::pods {

/// What the API server lets a priority class of a user's have at most. (kubernetes: HighestUserDefinablePriority)
inline constexpr std::int32_t highest_user_priority = 1'000'000'000;

/// The namespaces whose pods may say of themselves that they are critical. (podSources.trustedNamespaces)
class TrustedNamespaces {
 public:
  /// "*" among the names stands for all.
  explicit TrustedNamespaces(std::vector<std::string> names) : names_{std::move(names)} {}

  [[nodiscard]] bool contains(std::string_view name_space) const;

 private:
  std::vector<std::string> names_;
};

/// Whether there is anything to take back from the pod if it is not trusted.
[[nodiscard]] bool has_claims(const core::Pod& listed);

/// Takes back what a pod that is not trusted says of itself, as far as it would make it critical: a priority is no
/// higher than a user's may be, a priority class none of the system's, and it is static, if it says so, only where
/// `spec` is its manifest; null if no trusted source knows one.
void drop_claims(core::Pod& listed, const core::Pod* spec, SpecOrigin origin);

/// The same of a pod that got its spec, for what even an authentic spec carries of its user's text: the API server
/// guards the annotation of mirror pods, but not where a pod says it came from.
void drop_claims_of_spec(core::Pod& completed, const core::Pod& spec, SpecOrigin origin);

}  // namespace evictd::pods
