#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>

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
  using Until = std::map<std::string, Instant, std::less<>>;
  /// What a restart would have to learn anew.
  struct State {
    Until controllers{};                         ///< whose pods were evicted
    Until held{};                                ///< pods by uid
    std::set<std::string, std::less<>> known{};  ///< pods by uid; those of the last list

    friend bool operator==(const State&, const State&) = default;
  };

  /// `time`: for how long after an eviction; 0: never.
  explicit BackOff(Duration time) : time_{time} {}

  void evicted(const Pod& pod, Instant now);
  /// The pods on the node. New ones of a controller that lost a pod just now are held; its other pods, which were there
  /// before, are not.
  void pods_changed(const PodList& pods, Instant now);
  [[nodiscard]] bool holds(const Pod& pod, Instant now) const;

  /// Who was there before matters only where a controller's next pods are to be told from those.
  [[nodiscard]] State state() const {
    return {state_.controllers, state_.held, state_.controllers.empty() ? State{}.known : state_.known};
  }
  void restore(State state) { state_ = std::move(state); }

 private:
  Duration time_;
  State state_;
};

}  // namespace evictd::core
