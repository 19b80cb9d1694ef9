#include "kube/node_attributes.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <utility>

namespace evictd::kube {
namespace {

namespace json = boost::json;

const json::value* value_at(const json::value& document, std::string_view pointer) {
  boost::system::error_code error;
  return document.find_pointer(pointer, error);
}

const json::object* object_at(const json::value& document, std::string_view pointer) {
  const auto* value = value_at(document, pointer);
  return value == nullptr ? nullptr : value->if_object();
}

std::string text_of(const json::value& value) {
  const auto* text = value.if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

std::string text_at(const json::value& document, std::string_view pointer) {
  const auto* value = value_at(document, pointer);
  return value == nullptr ? std::string() : text_of(*value);
}

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

std::vector<admission::Taint> taints(const json::array& array) {
  std::vector<admission::Taint> list;
  for (const auto& taint : array)
    list.push_back(
        {.key = text_at(taint, "/key"), .value = text_at(taint, "/value"), .effect = text_at(taint, "/effect")});
  return list;
}

}  // namespace

Result<admission::Node> parse_node_attributes(std::string_view body) {
  boost::system::error_code error;
  const auto document = json::parse(body, error);
  if (error) return fail("the node read from the API server is not JSON: " + error.message());
  admission::Node node{.name = text_at(document, "/metadata/name")};
  if (node.name.empty()) return fail("the node read from the API server has no name");
  if (const auto* labels = object_at(document, "/metadata/labels"))
    for (const auto& [key, value] : *labels) node.labels.emplace(key, text_of(value));
  const auto* list = value_at(document, "/spec/taints");
  if (list != nullptr && list->is_array()) node.taints = taints(list->get_array());
  if (const auto* allocatable = object_at(document, "/status/allocatable")) {
    auto read = amounts(*allocatable);
    if (!read) return fail("the node read from the API server: " + read.error().message);
    node.allocatable = *std::move(read);
  }
  const auto* strict = value_at(document, "/status/features/supplementalGroupsPolicy");
  node.supplemental_groups_policy = strict != nullptr && strict->is_bool() && strict->get_bool();
  return node;
}

}  // namespace evictd::kube
