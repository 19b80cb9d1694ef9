#include "admission/allocation/device_manager.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
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
/// How many devices lie where: there are thousands of devices, and few places.
using CountsByPlace = std::map<NumaMask, std::int64_t>;

/// Limits on plugins' devices of one pod, over all its containers. Each may be a question to a plugin, and a decision
/// anew by its answer; hardly a pod has ten.
constexpr int most_plugin_limits = 256;

std::int64_t limit(const core::Container& container, std::string_view resource) {
  const auto found = container.resources.limits.find(resource);
  return found == container.resources.limits.end() ? 0 : found->second.value();
}

/// The resources that any container of the pod wants some of.
std::set<std::string> wanted_resources(const core::Pod& pod) {
  std::set<std::string> result;
  for (const auto& turn : turns(pod))
    for (const auto& [resource, amount] : turn.container.resources.limits)
      if (amount.value() > 0) result.insert(resource);
  return result;
}

/// What of these is given away, whatever becomes of the devices themselves.
IdsByResource in_use(const Allocations& allocations, const std::set<std::string>& resources) {
  IdsByResource result;
  for (const auto& [uid, pod] : allocations)
    for (const auto& [name, container] : pod)
      for (const auto& [resource, ids] : container.devices)
        if (resources.contains(resource)) result[resource].insert(ids.begin(), ids.end());
  return result;
}

/// `few` have far less than `many`.
Ids intersection(const Ids& few, const Ids& many) {
  Ids result;
  for (const auto& id : few)
    if (many.contains(id)) result.insert(result.end(), id);
  return result;
}

NumaMask place_of(const DeviceGroup& group, const std::string& id) {
  const auto found = group.places.find(id);
  return found == group.places.end() ? NumaMask{} : found->second;
}

/// Whether it matters where devices lie.
bool has_places(const DeviceGroup& group) {
  return std::ranges::any_of(group.places, [](const auto& entry) { return !entry.second.empty(); });
}

CountsByPlace count_places(const DeviceGroup& group, const Ids& ids) {
  CountsByPlace result;
  for (const auto& id : ids) ++result[place_of(group, id)];
  return result;
}

/// The first of these that make so many.
void add_up_to(Ids& target, const Ids& from, std::int64_t count) {
  for (const auto& id : from) {
    if (std::ssize(target) >= count) return;
    target.insert(id);
  }
}

class DeviceAllocation final : public Allocation {
 public:
  DeviceAllocation(const DevicesByResource& configured, const PluginDevices& plugins, NumaMask numa_nodes,
                   const core::Pod& pod, const Allocations& others)
      : pod_(pod), numa_nodes_(numa_nodes), preference_(plugins.preference) {
    const auto resources = wanted_resources(pod);
    const auto used = in_use(others, resources);
    for (const auto& resource : resources) {
      const auto given_away = used.find(resource);
      if (const auto own = configured.find(resource); own != configured.end()) {
        groups_[resource] = own->second;
      } else if (const auto told = plugins.groups.find(resource); told != plugins.groups.end()) {
        groups_[resource] = told->second;
        of_plugins_.insert(resource);
      } else if (given_away != used.end()) {
        groups_[resource] = nullptr;  // it was a plugin's, which has gone
        continue;
      } else {
        continue;
      }
      auto& free = free_[resource] = groups_[resource]->healthy;
      if (given_away != used.end())
        for (const auto& id : given_away->second) free.erase(id);
    }
    plugin_limits_ = count_plugin_limits();
  }

  [[nodiscard]] ProviderHints pod_hints() const override {
    ProviderHints result;
    for (const auto& [resource, group] : groups_) {
      const auto count = needed_at_once(
          pod_, [&resource = resource](const core::Container& container) { return limit(container, resource); });
      if (count > 0 && group != nullptr) result[resource] = hints_for(resource, count);
    }
    return result;
  }

  [[nodiscard]] ProviderHints hints(const Turn& turn) const override {
    ProviderHints result;
    for (const auto& [resource, group] : groups_)
      if (const auto count = limit(turn.container, resource); count > 0 && group != nullptr)
        result[resource] = hints_for(resource, count);
    return result;
  }

  [[nodiscard]] std::expected<void, Refusal> allocate(const Turn& turn, const Hint& hint) override {
    for (const auto& [resource, group] : groups_) {
      if (limit(turn.container, resource) <= 0) continue;
      if (plugin_limits_ > most_plugin_limits)
        return std::unexpected(Refusal::unexpected("the pod's " + std::to_string(plugin_limits_) +
                                                   " limits on devices of plugins, of which at most " +
                                                   std::to_string(most_plugin_limits) + " are taken"));
      const auto given = take(resource, turn.container, hint);
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
  [[nodiscard]] std::int64_t count_plugin_limits() const {
    std::int64_t count = 0;
    for (const auto& turn : turns(pod_))
      count += std::ranges::count_if(of_plugins_, [&](const auto& name) { return limit(turn.container, name) > 0; });
    return count;
  }

  [[nodiscard]] const Ids& reusable(const std::string& resource) const {
    static const Ids none;
    const auto found = reusable_.find(resource);
    return found == reusable_.end() ? none : found->second;
  }

  [[nodiscard]] ResourceHints hints_for(const std::string& resource, std::int64_t count) const {
    return device_hints(*groups_.at(resource), numa_nodes_, free_.at(resource), reusable(resource), count);
  }

  /// What earlier init containers had first, then free ones by the hint, and of those that are equal to it the ones
  /// that the plugin prefers. (kubelet: devicesToAllocate)
  [[nodiscard]] Result<Ids> take(const std::string& resource, const core::Container& container,
                                 const Hint& hint) const {
    const auto count = limit(container, resource);
    const auto& group = groups_.at(resource);
    if (group == nullptr) return fail("cannot allocate unregistered device " + resource);
    if (group->healthy.empty())
      return fail("no healthy devices present; cannot allocate unhealthy devices " + resource);
    Ids result;
    add_up_to(result, reusable(resource), count);
    const auto needed = count - std::ssize(result);
    if (needed == 0) return result;
    const auto& free = free_.at(resource);
    if (std::ssize(free) < needed)
      return fail("requested number of devices unavailable for " + resource + ". Requested: " + std::to_string(needed) +
                  ", Available: " + std::to_string(free.size()));
    // Most devices lie nowhere, and for all containers of a pod they would be copied again and again.
    const bool places_matter = hint.affinity && has_places(*group);
    const auto [near, elsewhere, nowhere] =
        places_matter ? by_nearness(*group, free, *hint.affinity) : DevicesByNearness{};
    const bool near_ones_do = needed < std::ssize(near);
    if (!near_ones_do) add_up_to(result, near, count);
    if (std::ssize(result) == count) return result;
    const auto first = preferred(resource, container, near_ones_do ? near : free, result);
    if (!first) return std::unexpected(first.error());
    add_up_to(result, *first, count);
    for (const auto* ids : {&near, &elsewhere, places_matter ? &nowhere : &free}) add_up_to(result, *ids, count);
    return result;
  }

  [[nodiscard]] Result<Ids> preferred(const std::string& resource, const core::Container& container,
                                      const Ids& eligible, const Ids& taken) const {
    if (preference_ == nullptr || !of_plugins_.contains(resource)) return {};
    const auto wish = preference_->preferred(container.name, resource, [&] {
      DeviceQuestion question{.container = container.name,
                              .resource = resource,
                              .available = eligible,
                              .must_include = taken,
                              .size = limit(container, resource)};
      question.available.insert(taken.begin(), taken.end());
      return question;
    });
    if (!wish) return std::unexpected(wish.error());
    return intersection(*wish, eligible);
  }

  const core::Pod& pod_;
  NumaMask numa_nodes_;
  DevicePreference* preference_;
  DevicesByResource groups_{};  // of what the pod wants; null: its plugin has gone
  std::set<std::string, std::less<>> of_plugins_{};
  std::int64_t plugin_limits_ = 0;  // on these, of all containers
  IdsByResource free_{};
  IdsByResource reusable_{};  // of init containers that are over, for this pod only
  std::map<std::string, IdsByResource, std::less<>> given_{};
};

}  // namespace

DeviceManager::DeviceManager(const std::vector<Device>& devices, NumaMask numa_nodes) : numa_nodes_(numa_nodes) {
  std::map<std::string, DeviceGroup> groups;
  for (const auto& device : devices) {
    auto& group = groups[device.resource];
    group.healthy.insert(device.id);
    group.places[device.id] = NumaMask{NumaNodes(device.numa_nodes.begin(), device.numa_nodes.end())};
  }
  for (auto& [resource, group] : groups) groups_[resource] = std::make_shared<const DeviceGroup>(std::move(group));
}

Result<std::unique_ptr<DeviceManager>> DeviceManager::make(const std::vector<Device>& devices, NumaMask numa_nodes) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& device : devices) {
    const auto which = "device " + device.id + " of " + device.resource;
    if (!seen.emplace(device.resource, device.id).second) return fail(which + " is named twice");
    for (const int node : device.numa_nodes)
      if (!numa_nodes.empty() && !numa_nodes.contains(node))
        return fail(which + " lies on NUMA node " + std::to_string(node) + ", which this machine does not have");
  }
  return std::make_unique<DeviceManager>(devices, numa_nodes);
}

std::unique_ptr<Allocation> DeviceManager::begin(const core::Pod& pod, const Allocations& others) const {
  return begin(pod, others, {});
}

std::unique_ptr<Allocation> DeviceManager::begin(const core::Pod& pod, const Allocations& others,
                                                 const PluginDevices& plugins) const {
  return std::make_unique<DeviceAllocation>(groups_, plugins, numa_nodes_, pod, others);
}

Result<void> DeviceManager::check(const Allocations& allocations) const {
  std::map<std::pair<std::string_view, std::string_view>, std::string_view> owner;
  for (const auto& [uid, pod] : allocations)
    for (const auto& [name, container] : pod)
      for (const auto& [resource, ids] : container.devices)
        for (const auto& id : ids)
          if (const auto [other, is_new] = owner.try_emplace({resource, id}, uid); !is_new && other->second != uid)
            return fail("device " + id + " of " + resource + " of pod " + uid + " belongs to pod " +
                        std::string(other->second));
  return {};
}

ResourceHints device_hints(const DeviceGroup& group, NumaMask numa_nodes, const Ids& free, const Ids& reusable,
                           std::int64_t count) {
  if (!has_places(group)) return std::nullopt;
  if (std::ssize(free) + std::ssize(reusable) < count) return std::vector<Hint>{};
  CountsByPlace all_places;
  for (const auto& [id, place] : group.places) ++all_places[place];
  const auto free_places = count_places(group, free);
  const auto reusable_places = count_places(group, reusable);
  NumaMask nodes;
  for (const auto& [place, number] : all_places) nodes = nodes | (place & numa_nodes);
  int fewest = nodes.count();
  std::vector<Hint> result;
  for_each_mask(nodes, [&](NumaMask mask) {
    // A device near to all nodes is in no mask, as with the kubelet: it is what is left when those with a place
    // are not enough.
    const auto inside = [mask](NumaMask place) { return !(place & mask).empty(); };
    const auto count_inside = [&inside](const CountsByPlace& places) {
      std::int64_t sum = 0;
      for (const auto& [place, number] : places)
        if (inside(place)) sum += number;
      return sum;
    };
    if (count_inside(all_places) >= count) fewest = std::min(fewest, mask.count());
    for (const auto& [place, number] : reusable_places)
      if (!place.empty() && !inside(place)) return;
    if (count_inside(free_places) + count_inside(reusable_places) >= count) result.push_back({.affinity = mask});
  });
  for (auto& hint : result) hint.preferred = hint.affinity->count() == fewest;
  return result;
}

DevicesByNearness by_nearness(const DeviceGroup& group, const Ids& free, NumaMask affinity) {
  DevicesByNearness result;
  for (const auto& id : free) {
    const auto place = place_of(group, id);
    auto& there = place.empty() ? result.nowhere : (place & affinity).empty() ? result.elsewhere : result.near;
    there.insert(there.end(), id);
  }
  return result;
}

}  // namespace evictd::admission
