#include "kube/node_attributes.hpp"

#include <fmt/format.h>

#include <boost/json/value.hpp>
#include <utility>
#include <vector>

#include "core/pod.hpp"
#include "core/quantity.hpp"
#include "kube/json_access.hpp"

namespace evictd::kube {
namespace {

namespace json = boost::json;

Result<core::ResourceList> amounts(const json::object& object) {
  core::ResourceList list;
  for (const auto& [resource, value] : object) {
    const auto text = text_of(value);
    auto quantity = core::Quantity::parse(text);
    if (!quantity) return fail(quantity.error(), fmt::format("status.allocatable.{}", std::string_view(resource)));
    list.emplace(resource, *std::move(quantity));
  }
  return list;
}

std::vector<core::Taint> taints(const json::array& array) {
  std::vector<core::Taint> list;
  for (const auto& taint : array)
    list.push_back(
        {.key = text_at(taint, "/key"), .value = text_at(taint, "/value"), .effect = text_at(taint, "/effect")});
  return list;
}

}  // namespace

Result<core::Node> parse_node_attributes(std::string_view body) {
  const auto parsed = parse_document(body, "the node read from the API server");
  if (!parsed) return std::unexpected(parsed.error());
  const auto& document = *parsed;
  core::Node node{.name = text_at(document, "/metadata/name")};
  if (node.name.empty()) return fail("the node read from the API server has no name");
  if (const auto* labels = object_at(document, "/metadata/labels"))
    for (const auto& [key, value] : *labels) node.labels.emplace(key, text_of(value));
  if (const auto* list = array_at(document, "/spec/taints")) node.taints = taints(*list);
  if (const auto* allocatable = object_at(document, "/status/allocatable")) {
    auto read = amounts(*allocatable);
    if (!read) return fail("the node read from the API server: " + read.error().message);
    node.allocatable = *std::move(read);
  }
  const auto* strict = value_at(document, "/status/features/supplementalGroupsPolicy");
  node.supplemental_groups_policy = strict != nullptr && strict->is_bool() && strict->get_bool();
  if (const auto* features = array_at(document, "/status/declaredFeatures"))
    for (const auto& feature : *features) node.declared_features.emplace(text_of(feature));
  return node;
}

}  // namespace evictd::kube
