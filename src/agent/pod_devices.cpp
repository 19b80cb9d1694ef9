#include "agent/pod_devices.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "admission/allocation/provider.hpp"
#include "admission/device_edits.hpp"

namespace asio = boost::asio;

namespace evictd::agent {
namespace {

bool limits_plugin_devices(const core::Container& container, const devices::PluginCalls& plugins) {
  return std::ranges::any_of(container.resources.limits, [&](const auto& limit) {
    return limit.second.value() > 0 && plugins.is_of_plugins(limit.first);
  });
}

/// Absent: nothing that the container has is a plugin's.
asio::awaitable<Result<std::optional<admission::DeviceEdits>>> allocate_for_container(
    devices::PluginCalls& plugins, const admission::ContainerAllocation& given) {
  std::optional<admission::DeviceEdits> edits;
  for (const auto& [resource, ids] : given.devices) {
    if (!plugins.is_of_plugins(resource)) continue;
    const auto answer = co_await plugins.allocate(resource, ids);
    if (!answer) co_return std::unexpected(answer.error());
    if (!edits) edits.emplace();
    admission::add_edits(*edits, *answer);
  }
  co_return edits;
}

}  // namespace

Result<std::set<std::string>> DeviceWishes::preferred(const std::string& container, const std::string& resource,
                                                      const MakeQuestion& question) {
  if (const auto known = known_.find({container, resource}); known != known_.end()) return known->second;
  if (!open_ && plugins_ != nullptr && plugins_->has_preferences(resource)) open_ = question();
  return std::set<std::string>{};
}

void DeviceWishes::learn(const admission::DeviceQuestion& question, Result<std::set<std::string>> ids) {
  if (!ids) ids = fail(ids.error(), "device plugin GetPreferredAllocation rpc failed with err");
  known_.insert_or_assign({question.container, question.resource}, std::move(ids));
}

bool wants_plugin_devices(const core::Pod& pod, const devices::PluginCalls& plugins) {
  const auto wants = [&](const core::Container& container) { return limits_plugin_devices(container, plugins); };
  return std::ranges::any_of(pod.init_containers, wants) || std::ranges::any_of(pod.containers, wants);
}

asio::awaitable<Result<void>> allocate_devices(devices::PluginCalls& plugins, core::PodPtr pod,
                                               admission::PodAllocation& allocation) {
  for (const auto& turn : admission::turns(*pod)) {
    const auto found = allocation.find(turn.container.name);
    if (found == allocation.end() || found->second.edits) continue;
    auto edits = co_await allocate_for_container(plugins, found->second);
    if (!edits) co_return std::unexpected(edits.error());
    found->second.edits = *std::move(edits);
  }
  co_return Result<void>{};
}

asio::awaitable<Result<void>> pre_start_containers(devices::PluginCalls& plugins, std::string container,
                                                   admission::PodAllocation allocation) {
  for (const auto& [name, given] : allocation) {
    if (!container.empty() && name != container) continue;
    for (const auto& [resource, ids] : given.devices) {
      if (!plugins.is_of_plugins(resource)) continue;
      const auto told = co_await plugins.pre_start(resource, ids);
      if (!told) co_return fail(told.error(), "device plugin PreStartContainer rpc failed with err");
    }
  }
  co_return Result<void>{};
}

}  // namespace evictd::agent
