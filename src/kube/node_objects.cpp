#include "kube/node_objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "core/signal.hpp"
#include "kube/json_access.hpp"
#include "kube/url.hpp"

namespace evictd::kube {
namespace {

namespace json = boost::json;
using core::NodeCondition;

void read_conditions(NodeView& view, const json::array& conditions) {
  for (const auto& condition : conditions) {
    const auto type = text_at(condition, "/type");
    if (type == "Ready")
      view.ready = {.status = text_at(condition, "/status"),
                    .reason = text_at(condition, "/reason"),
                    .message = text_at(condition, "/message")};
    const auto known = std::ranges::find(core::node_condition_rows, type, &core::NodeConditionRow::name);
    if (known != core::node_condition_rows.end()) view.conditions[known->condition] = text_at(condition, "/status");
  }
}

bool is_taint(const json::value& value, std::string_view key) {
  return text_at(value, "/key") == key && text_at(value, "/effect") == "NoSchedule";
}

constexpr std::string_view not_ready_reason = "KubeletNotReady";
constexpr std::string_view not_ready_message = "node is shutting down";  // kubelet: managerImpl.ShutdownStatus

json::object ready_condition(bool ready, WallTime since, WallTime now) {
  return {{"type", "Ready"},
          {"status", ready ? "True" : "False"},
          {"reason", ready ? "KubeletReady" : not_ready_reason},
          {"message", ready ? "kubelet is posting ready status" : not_ready_message},
          {"lastHeartbeatTime", rfc3339(now)},
          {"lastTransitionTime", rfc3339(since)}};
}

/// What Ready has to become; absent: it stays.
std::optional<bool> change_of_ready(const std::optional<ReadyCondition>& ready, bool shutting_down) {
  if (!ready) return std::nullopt;
  if (shutting_down) return ready->status == "True" ? std::optional(false) : std::nullopt;
  const bool is_ours =
      ready->status == "False" && ready->reason == not_ready_reason && ready->message == not_ready_message;
  return is_ours ? std::optional(true) : std::nullopt;
}

}  // namespace

Result<NodeView> parse_node(std::string_view body) {
  const auto document = parse_document(body, "the node read from the API server");
  if (!document) return std::unexpected(document.error());
  NodeView view;
  view.resource_version = text_at(*document, "/metadata/resourceVersion");
  if (view.resource_version.empty()) return fail("the node read from the API server has no resourceVersion");
  if (const auto* conditions = array_at(*document, "/status/conditions")) read_conditions(view, *conditions);
  if (const auto* taints = array_at(*document, "/spec/taints")) view.taints = json::serialize(*taints);
  return view;
}

std::string node_target(std::string_view node) { return fmt::format("/api/v1/nodes/{}", percent_encoded(node)); }

std::string conditions_patch(const NodeView& view, const core::NodeConditions& conditions,
                             const std::map<NodeCondition, WallTime>& since, WallTime now,
                             const std::optional<ShutdownState>& shutdown) {
  json::array list;
  for (const auto& row : core::node_condition_rows) {
    const bool holds = conditions.contains(row.condition);
    const std::string_view status = holds ? "True" : "False";
    json::object condition{{"type", row.name},
                           {"status", status},
                           {"reason", holds ? row.reason_true : row.reason_false},
                           {"message", holds ? row.message_true : row.message_false},
                           {"lastHeartbeatTime", rfc3339(now)}};
    const auto known = view.conditions.find(row.condition);
    if (known == view.conditions.end() || known->second != status) {
      const auto changed = since.find(row.condition);
      condition["lastTransitionTime"] = rfc3339(changed == since.end() ? now : changed->second);
    }
    list.push_back(std::move(condition));
  }
  const auto ready = shutdown ? change_of_ready(view.ready, shutdown->pending) : std::nullopt;
  if (!ready) return json::serialize(json::object{{"status", {{"conditions", std::move(list)}}}});
  list.push_back(ready_condition(*ready, shutdown->since, now));
  return json::serialize(json::object{{"metadata", {{"resourceVersion", view.resource_version}}},
                                      {"status", {{"conditions", std::move(list)}}}});
}

std::string_view taint_key(NodeCondition condition) { return core::row_of(condition).taint; }

std::optional<std::string> taints_patch(const NodeView& view, const core::NodeConditions& conditions) {
  boost::system::error_code error;
  auto parsed = json::parse(view.taints, error);
  auto taints = error || !parsed.is_array() ? json::array() : std::move(parsed.get_array());
  bool changed = false;
  for (const auto& row : core::node_condition_rows) {
    const auto is_ours = [&](const json::value& taint) { return is_taint(taint, row.taint); };
    const bool there = std::ranges::any_of(taints, is_ours);
    const auto own = view.conditions.find(row.condition);
    if (conditions.contains(row.condition)) {
      if (there) continue;
      taints.push_back(json::object{{"key", row.taint}, {"effect", "NoSchedule"}});
    } else {
      if (!there || (own != view.conditions.end() && own->second == "True")) continue;
      json::array kept;
      for (auto& taint : taints)
        if (!is_ours(taint)) kept.push_back(std::move(taint));
      taints = std::move(kept);
    }
    changed = true;
  }
  if (!changed) return std::nullopt;
  return json::serialize(json::object{{"metadata", {{"resourceVersion", view.resource_version}}},
                                      {"spec", {{"taints", std::move(taints)}}}});
}

}  // namespace evictd::kube
