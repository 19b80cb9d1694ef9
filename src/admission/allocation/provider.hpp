#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admission/allocation/hint.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "core/saturating.hpp"

namespace evictd::admission {

/// Why a pod cannot be given what it asks for, as the kubelet writes it into the pod's status.
struct Refusal {
  std::string reason;
  std::string message;

  /// An error that no rule foresees. (kubelet: unexpectedAdmissionError)
  [[nodiscard]] static Refusal unexpected(std::string_view error) {
    return {.reason = "UnexpectedAdmissionError",
            .message = "Allocate failed due to " + std::string(error) + ", which is unexpected"};
  }

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

/// One container on its turn. What an init container has is free for those after it, unless it is a sidecar.
struct Turn {
  const core::Container& container;
  bool is_init = false;

  [[nodiscard]] bool is_over_before_next() const { return is_init && !container.restart_always; }
};

/// A pod's containers in the order in which they start: init containers first.
[[nodiscard]] inline std::vector<Turn> turns(const core::Pod& pod) {
  std::vector<Turn> result;
  for (const auto& container : pod.init_containers) result.push_back({container, true});
  for (const auto& container : pod.containers) result.push_back({container, false});
  return result;
}

/// What all containers need at once, given what each needs: those that stay and all sidecars, or the largest init
/// container beside the sidecars started before it, if that is more. What a pod asks for may be any number.
template <class AmountOf>
[[nodiscard]] std::int64_t needed_at_once(const core::Pod& pod, AmountOf amount_of) {
  std::int64_t sidecars = 0;
  std::int64_t init = 0;
  for (const auto& container : pod.init_containers) {
    const std::int64_t amount = amount_of(container);
    if (container.restart_always)
      sidecars = core::saturating_add(sidecars, amount);
    else
      init = std::max(init, core::saturating_add(sidecars, amount));
  }
  std::int64_t running = sidecars;
  for (const auto& container : pod.containers) running = core::saturating_add(running, amount_of(container));
  return std::max(init, running);
}

/// The way of one pod through one kind of resource. Hints are asked for first, for the pod or for a container on its
/// turn; then that container is given its part. Nothing of it reaches the node: the result is handed over at the end.
class Allocation {
 public:
  virtual ~Allocation() = default;

  [[nodiscard]] virtual ProviderHints pod_hints() const = 0;
  [[nodiscard]] virtual ProviderHints hints(const Turn& turn) const = 0;
  /// `hint`: where the topology policy wants it. Containers come in the order of `turns`, each once.
  [[nodiscard]] virtual std::expected<void, Refusal> allocate(const Turn& turn, const Hint& hint) = 0;
  /// Adds what was given to whom.
  virtual void hand_over(PodAllocation& allocation) const = 0;
};

/// One kind of resource that containers can be given for themselves: CPUs, memory, devices. It keeps nothing: what is
/// free follows from what the other pods have.
class ResourceProvider {
 public:
  virtual ~ResourceProvider() = default;

  /// The pod must outlive the round; `others` is what all other pods have.
  [[nodiscard]] virtual std::unique_ptr<Allocation> begin(const core::Pod& pod, const Allocations& others) const = 0;
  /// What is wrong with the given allocations: more than there is, the same thing twice.
  [[nodiscard]] virtual Result<void> check(const Allocations& allocations) const = 0;
  /// What its allocations rest upon. They are worthless where any of it has changed.
  [[nodiscard]] virtual std::map<std::string, std::string, std::less<>> basis() const = 0;
};

}  // namespace evictd::admission
