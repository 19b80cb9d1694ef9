#include "admission/allocation/device_manager.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "admission/allocation/hint.hpp"
#include "admission/allocation/numa_mask.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::admission {
namespace {

using Ids = DeviceManager::Ids;
using IdsByResource = std::map<std::string, Ids, std::less<>>;

std::int64_t limit(const core::Container& container, std::string_view resource) {
  const auto found = container.resources.limits.find(resource);
  return found == container.resources.limits.end() ? 0 : found->second.value();
}

/// Given away, whatever becomes of the devices themselves.
IdsByResource in_use(const Allocations& allocations) {
  IdsByResource result;
  for (const auto& [uid, pod] : allocations)
    for (const auto& [name, container] : pod)
      for (const auto& [resource, ids] : container.devices) result[resource].insert(ids.begin(), ids.end());
  return result;
}

class DeviceAllocation final : public Allocation {
 public:
  DeviceAllocation(const DeviceManager& manager, const core::Pod& pod, const Allocations& others)
      : manager_(manager), pod_(pod), free_(manager.ids()) {
    for (const auto& [resource, ids] : in_use(others))
      if (const auto found = free_.find(resource); found != free_.end())
        for (const auto& id : ids) found->second.erase(id);
  }

  [[nodiscard]] ProviderHints pod_hints() const override {
    ProviderHints result;
    for (const auto& [resource, ids] : manager_.ids()) {
      const auto count = needed_at_once(
          pod_, [&resource = resource](const core::Container& container) { return limit(container, resource); });
      if (count > 0) result[resource] = hints_for(resource, count);
    }
    return result;
  }

  [[nodiscard]] ProviderHints hints(const Turn& turn) const override {
    ProviderHints result;
    for (const auto& [resource, ids] : manager_.ids())
      if (const auto count = limit(turn.container, resource); count > 0) result[resource] = hints_for(resource, count);
    return result;
  }

  [[nodiscard]] std::expected<void, Refusal> allocate(const Turn& turn, const Hint& hint) override {
    for (const auto& [resource, ids] : manager_.ids()) {
      const auto count = limit(turn.container, resource);
      if (count <= 0) continue;
      const auto given = take(resource, count, hint);
      if (!given) return std::unexpected(Refusal::unexpected(given.error().message));
      auto& reusable = reusable_[resource];
      for (const auto& id : *given) {
        free_[resource].erase(id);
        if (turn.is_over_before_next())
          reusable.insert(id);
        else
          reusable.erase(id);
      }
      given_[turn.container.name][resource] = *given;
    }
    return {};
  }

  void hand_over(PodAllocation& allocation) const override {
    for (const auto& [name, devices] : given_) allocation[name].devices = devices;
  }

 private:
  [[nodiscard]] const Ids& reusable(const std::string& resource) const {
    static const Ids none;
    const auto found = reusable_.find(resource);
    return found == reusable_.end() ? none : found->second;
  }

  [[nodiscard]] ResourceHints hints_for(const std::string& resource, std::int64_t count) const {
    if (!manager_.has_place(resource)) return std::nullopt;
    return manager_.hints(resource, free_.at(resource), reusable(resource), count);
  }

  /// What earlier init containers had first, then free ones by the hint.
  [[nodiscard]] Result<Ids> take(const std::string& resource, std::int64_t count, const Hint& hint) const {
    Ids result;
    for (const auto& id : reusable(resource))
      if (std::ssize(result) < count) result.insert(id);
    const auto needed = count - std::ssize(result);
    const auto& free = free_.at(resource);
    if (std::ssize(free) < needed)
      return fail("requested number of devices unavailable for " + resource + ". Requested: " + std::to_string(needed) +
                  ", Available: " + std::to_string(free.size()));
    for (const auto& id : manager_.by_nearness(resource, free, hint.affinity))
      if (std::ssize(result) < count) result.insert(id);
    return result;
  }

  const DeviceManager& manager_;
  const core::Pod& pod_;
  IdsByResource free_;
  IdsByResource reusable_{};  // of init containers that are over, for this pod only
  std::map<std::string, IdsByResource, std::less<>> given_{};
};

}  // namespace

DeviceManager::DeviceManager(std::vector<Device> devices, NumaMask numa_nodes) : numa_nodes_(numa_nodes) {
  for (auto& device : devices) {
    ids_[device.resource].insert(device.id);
    places_[{device.resource, device.id}] = NumaMask{NumaNodes(device.numa_nodes.begin(), device.numa_nodes.end())};
  }
}

Result<std::unique_ptr<DeviceManager>> DeviceManager::make(std::vector<Device> devices, NumaMask numa_nodes) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& device : devices) {
    const auto which = "device " + device.id + " of " + device.resource;
    if (!seen.emplace(device.resource, device.id).second) return fail(which + " is named twice");
    for (const int node : device.numa_nodes)
      if (!numa_nodes.empty() && !numa_nodes.contains(node))
        return fail(which + " lies on NUMA node " + std::to_string(node) + ", which this machine does not have");
  }
  return std::make_unique<DeviceManager>(std::move(devices), numa_nodes);
}

NumaMask DeviceManager::place(std::string_view resource, const std::string& id) const {
  const auto found = places_.find({std::string(resource), id});
  return found == places_.end() ? NumaMask{} : found->second;
}

bool DeviceManager::has_place(std::string_view resource) const {
  return std::ranges::any_of(
      places_, [&](const auto& entry) { return entry.first.resource == resource && !entry.second.empty(); });
}

std::vector<Hint> DeviceManager::hints(std::string_view resource, const Ids& free, const Ids& reusable,
                                       std::int64_t count) const {
  const auto found = ids_.find(resource);
  if (found == ids_.end() || std::ssize(free) + std::ssize(reusable) < count) return {};
  const auto places = [&](const Ids& ids) {
    std::vector<NumaMask> result;
    for (const auto& id : ids) result.push_back(place(resource, id));
    return result;
  };
  const auto all_places = places(found->second);
  const auto free_places = places(free);
  const auto reusable_places = places(reusable);
  NumaMask nodes;
  for (const auto place : all_places) nodes = nodes | (place & numa_nodes_);
  int fewest = nodes.count();
  std::vector<Hint> result;
  for_each_mask(nodes, [&](NumaMask mask) {
    // A device near to all nodes is in no mask, as with the kubelet: it is what is left when those with a place
    // are not enough.
    const auto inside = [mask](NumaMask place) { return !(place & mask).empty(); };
    if (std::ranges::count_if(all_places, inside) >= count) fewest = std::min(fewest, mask.count());
    std::int64_t matching = std::ranges::count_if(free_places, inside);
    for (const auto place : reusable_places) {
      if (place.empty()) continue;
      if (!inside(place)) return;
      ++matching;
    }
    if (matching >= count) result.push_back({.affinity = mask});
  });
  for (auto& hint : result) hint.preferred = hint.affinity->count() == fewest;
  return result;
}

std::vector<std::string> DeviceManager::by_nearness(std::string_view resource, const Ids& free,
                                                    const std::optional<NumaMask>& affinity) const {
  if (!affinity || !has_place(resource)) return {free.begin(), free.end()};
  std::array<std::vector<std::string>, 3> groups;
  for (const auto& id : free) {
    const auto where = place(resource, id);
    const std::size_t group = where.empty() ? 2 : (where & *affinity).empty() ? 1 : 0;
    groups[group].push_back(id);
  }
  std::vector<std::string> result;
  for (auto& group : groups) std::ranges::move(group, std::back_inserter(result));
  return result;
}

std::unique_ptr<Allocation> DeviceManager::begin(const core::Pod& pod, const Allocations& others) const {
  return std::make_unique<DeviceAllocation>(*this, pod, others);
}

Result<void> DeviceManager::check(const Allocations& allocations) const {
  std::map<Key, std::string_view> owner;
  for (const auto& [uid, pod] : allocations)
    for (const auto& [name, container] : pod)
      for (const auto& [resource, ids] : container.devices)
        for (const auto& id : ids)
          if (const auto [other, is_new] = owner.try_emplace({resource, id}, uid); !is_new && other->second != uid)
            return fail("device " + id + " of " + resource + " of pod " + uid + " belongs to pod " +
                        std::string(other->second));
  return {};
}

}  // namespace evictd::admission
