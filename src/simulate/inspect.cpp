#include "simulate/inspect.hpp"

#include <boost/json.hpp>
#include <utility>

#include "core/pod_resources.hpp"
#include "core/qos.hpp"
#include "core/quantity.hpp"
#include "pods/manifest.hpp"

namespace json = boost::json;

namespace evictd::simulate {
namespace {

json::object describe(const core::ResourceList& amounts) {
  json::object result;
  for (const auto& [resource, quantity] : amounts) result[resource] = quantity.to_string();
  return result;
}

}  // namespace

json::object inspect(const core::Pod& pod, std::int64_t memory_capacity) {
  json::array containers;
  const core::OomScoreAdj given(pod, memory_capacity);
  for (const auto* list : {&pod.containers, &pod.init_containers})
    for (const auto& container : *list)
      containers.push_back({{"name", container.name}, {"oomScoreAdj", given.of(container)}});
  return {{"qosClass", core::name(core::qos_class(pod))}, {"critical", core::is_critical(pod)},
          {"priority", pod.priority.value_or(0)},         {"requests", describe(core::pod_requests(pod))},
          {"limits", describe(core::pod_limits(pod))},    {"containers", std::move(containers)}};
}

Result<json::value> inspect_document(const std::string& text, const std::string& name, std::int64_t memory_capacity) {
  const auto pods = pods::parse_pods(text, name);
  if (!pods) return std::unexpected(pods.error());
  if (pods->size() == 1) return json::value(inspect(pods->front(), memory_capacity));
  json::array all;
  for (const auto& pod : *pods) all.emplace_back(inspect(pod, memory_capacity));
  return json::value(std::move(all));
}

}  // namespace evictd::simulate
