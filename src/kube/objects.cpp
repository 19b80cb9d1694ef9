#include "kube/objects.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <utility>

#include "core/printable.hpp"
#include "kube/json_access.hpp"

namespace evictd::kube {
namespace {

namespace json = boost::json;

/// managedFields mirror the fields of their object, so an object of depth 32 can have some of depth 64.
const json::parse_options options = [] {
  json::parse_options result;
  result.max_depth = 96;
  return result;
}();

Result<json::object> parse_object(std::string_view text) {
  boost::system::error_code error;
  auto value = json::parse(text, error, {}, options);
  if (error) return fail("is no JSON: " + error.message());
  if (!value.is_object()) return fail("is no JSON object");
  return std::move(value.get_object());
}

json::object* object_in(json::object& parent, std::string_view key) {
  auto* value = parent.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

void null_infinities(json::value& value) {
  if (const auto* number = value.if_double(); number != nullptr && std::isinf(*number)) value = nullptr;
  if (auto* array = value.if_array())
    for (auto& item : *array) null_infinities(item);
  if (auto* object = value.if_object())
    for (auto& member : *object) null_infinities(member.value());
}

std::string serialized(json::object& object) {
  if (auto* metadata = object_in(object, "metadata")) metadata->erase("managedFields");
  auto text = json::serialize(object);
  if (text.find("Infinity") == std::string::npos) return text;
  // Boost.JSON reads a number beyond every double as infinity, and writes that as what is no JSON.
  for (auto& member : object) null_infinities(member.value());
  return json::serialize(object);
}

}  // namespace

Result<ListPage> parse_list(std::string_view text) {
  auto list = parse_object(text);
  if (!list) return fail(list.error(), "the list");
  auto* metadata = object_in(*list, "metadata");
  if (metadata == nullptr) return fail("the list: has no metadata");
  ListPage page{.resource_version = text_in(*metadata, "resourceVersion"),
                .continue_token = text_in(*metadata, "continue"),
                .objects = {}};
  if (page.resource_version.empty()) return fail("the list: has no resourceVersion");
  auto* items = list->if_contains("items");
  if (items == nullptr || items->is_null()) return page;  // Go writes an empty list this way too
  if (!items->is_array()) return fail("the list: its items are no list");
  page.objects.reserve(items->get_array().size());
  for (auto& item : items->get_array()) {
    if (!item.is_object()) return fail("the list: an item is no object");
    page.objects.push_back(serialized(item.get_object()));
    item = nullptr;  // its memory is not needed any more
  }
  return page;
}

Result<WatchEvent> parse_watch_event(std::string_view text) {
  auto event = parse_object(text);
  if (!event) return fail(event.error(), "a watch event");
  const auto type = text_in(*event, "type");
  auto* object = object_in(*event, "object");
  if (object == nullptr) return fail("a watch event: has no object");

  WatchEvent result;
  if (type == "ERROR") {
    const auto* code = object->if_contains("code");
    result.code = code != nullptr && code->is_int64() ? static_cast<int>(code->get_int64()) : 0;
    result.message = core::printable(text_in(*object, "message"));
    return result;
  }
  if (type == "ADDED" || type == "MODIFIED")
    result.kind = WatchEvent::Kind::Upserted;
  else if (type == "DELETED")
    result.kind = WatchEvent::Kind::Deleted;
  else if (type == "BOOKMARK")
    result.kind = WatchEvent::Kind::Bookmark;
  else
    return fail(fmt::format("a watch event: of unknown type \"{}\"", core::printable(type)));

  if (const auto* metadata = object_in(*object, "metadata"))
    result.resource_version = text_in(*metadata, "resourceVersion");
  if (result.resource_version.empty()) return fail("a watch event: its object has no resourceVersion");
  if (result.kind != WatchEvent::Kind::Bookmark) result.object = serialized(*object);
  return result;
}

}  // namespace evictd::kube
