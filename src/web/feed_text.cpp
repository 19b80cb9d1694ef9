#include "web/feed_text.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <string_view>
#include <utility>

namespace evictd::web {
namespace {

/// "{}" where a text in it is not UTF-8, which JSON cannot carry.
std::string json(const google::protobuf::Message& message) {
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(message, &text).ok()) return "{}";
  return text;
}

/// JSON is one line: line ends in it are escaped.
std::string message(std::string_view kind, const std::string& data) {
  return fmt::format("event: {}\ndata: {}\n\n", kind, data);
}

std::string json_of(v1::NodeStatus status) {
  for (auto& stage : *status.mutable_latencies()) stage.clear_buckets();
  return json(status);
}

}  // namespace

std::string snapshot_text(v1::NodeStatus status, const std::vector<events::EventPtr>& events) {
  std::string list;
  for (const auto& event : events) list += (list.empty() ? "" : ",") + json(*event);
  return "retry: 2000\n" +
         message("snapshot", fmt::format(R"({{"status":{},"events":[{}]}})", json_of(std::move(status)), list));
}

std::string status_text(v1::NodeStatus status) { return message("status", json_of(std::move(status))); }

std::string events_text(const std::vector<events::EventPtr>& events) {
  std::string text;
  for (const auto& event : events) text += message("event", json(*event));
  return text;
}

}  // namespace evictd::web
