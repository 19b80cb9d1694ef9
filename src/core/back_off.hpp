#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/duration.hpp"
#include "core/pod.hpp"

namespace evictd::core {

/// What pods made by the same controller have in common: "namespace/name", without the five characters that the API
/// server appends to generated names (alphabet bcdfghjklmnpqrstvwxz2456789).
[[nodiscard]] std::string controller_of(const Pod& pod);

/// Pods that come straight back after an eviction: whoever made them will make them again, so that evicting them again
/// and again frees nothing for long. For a while others go first.
class BackOff {
 public:
  /// `time`: for how long after an eviction; 0: never.
  explicit BackOff(Duration time) : time_{time} {}

  void evicted(const Pod& pod, Instant now);
  /// The pods on the node. New ones of a controller that lost a pod just now are held; its other pods, which were there
  /// before, are not.
  void pods_changed(const PodList& pods, Instant now);
  [[nodiscard]] bool holds(const Pod& pod, Instant now) const;

 private:
  using Until = std::map<std::string, Instant, std::less<>>;

  Duration time_;
  Until controllers_;
  Until held_;  // by uid
  std::set<std::string, std::less<>> known_;
};

}  // namespace evictd::core
