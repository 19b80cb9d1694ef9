#include "kube/model_server.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace evictd::fixture {
namespace {

namespace json = boost::json;

std::string text(const json::value& value) { return std::string(value.as_string()); }

kube::Response ok(std::string body = "{}") { return {.status = 200, .body = std::move(body)}; }

constexpr std::string_view foreign = "example.com/maintenance";

}  // namespace

kube::Response refusal(int code, std::string_view reason, std::string_view message, std::string_view field) {
  json::object status{{"kind", "Status"}, {"message", message}, {"reason", reason}, {"code", code}};
  if (!field.empty()) status["details"] = {{"causes", json::array{json::object{{"field", field}}}}};
  return {.status = code, .body = json::serialize(status)};
}

kube::Response ModelServer::handle(const kube::Request& request) {
  constexpr std::string_view namespaces = "/api/v1/namespaces/";
  constexpr std::string_view nodes = "/api/v1/nodes/";
  const std::string_view target = request.target;
  if (target.starts_with(namespaces)) return handle_pod(request, target.substr(namespaces.size()));
  if (target == std::string(nodes) + node_name) return handle_node(request, false);
  if (target == std::string(nodes) + node_name + "/status") return handle_node(request, true);
  return refusal(404, "NotFound", "not found");
}

kube::Response ModelServer::another_uid(std::string_view wanted, std::string_view there) const {
  if (refuses_uid_as_invalid) return refusal(422, "Invalid", "metadata.uid: field is immutable", "metadata.uid");
  return refusal(409, "Conflict",
                 "Precondition failed: UID in precondition: " + std::string(wanted) +
                     ", UID in object meta: " + std::string(there));
}

kube::Response ModelServer::handle_pod(const kube::Request& request, std::string_view rest) {
  const auto slash = rest.find('/');
  const auto name_space = rest.substr(0, slash);
  rest.remove_prefix(slash + 1);
  if (rest == "events") return create_event(request, name_space);
  rest.remove_prefix(std::string_view("pods/").size());
  const bool status = rest.ends_with("/status");
  if (status) rest.remove_suffix(std::string_view("/status").size());
  const auto right = request.method == "GET" ? "get pods" : status ? "patch pods/status" : "delete pods";
  if (forbidden.contains(right)) return refusal(403, "Forbidden", "pods is forbidden");
  const auto found = pods.find(std::string(name_space) + "/" + std::string(rest));
  if (found == pods.end()) return refusal(404, "NotFound", "pod not found");
  auto& pod = found->second;
  if (request.method == "GET") {
    json::object metadata{{"uid", pod.uid}};
    if (!pod.mirror_of.empty()) metadata["annotations"] = {{"kubernetes.io/config.mirror", pod.mirror_of}};
    if (pod.deleted) metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    json::object state{{"phase", pod.phase}};
    if (!pod.reason.empty()) state["reason"] = pod.reason;
    return ok(json::serialize(json::object{{"metadata", std::move(metadata)}, {"status", std::move(state)}}));
  }
  if (status) return patch_pod(pod, request.body);
  const auto wanted = text(json::parse(request.body).at("preconditions").at("uid"));
  if (wanted != pod.uid) return another_uid(wanted, pod.uid);
  ++deleted[pod.uid];
  log.push_back("delete " + pod.uid);
  pods.erase(found);
  return ok();
}

kube::Response ModelServer::patch_pod(Pod& pod, const std::string& body) {
  const auto patch = json::parse(body);
  const auto wanted = text(patch.at("metadata").at("uid"));
  if (wanted != pod.uid) return another_uid(wanted, pod.uid);
  // A patch that changes nothing is not written: the object keeps its version.
  if (pod.last_patch == body) return ok();
  pod.last_patch = body;
  pod.phase = text(patch.at("status").at("phase"));
  pod.reason = text(patch.at("status").at("reason"));
  ++pod.modifications;
  log.push_back("status " + pod.uid);
  return ok();
}

kube::Response ModelServer::create_event(const kube::Request& request, std::string_view name_space) {
  if (forbidden.contains("create events")) return refusal(403, "Forbidden", "events is forbidden");
  const auto event = json::parse(request.body);
  const auto uid = text(event.at("involvedObject").at("uid"));
  const auto key = std::string(name_space) + "/" + text(event.at("metadata").at("name"));
  if (!events.emplace(key, uid).second) return refusal(409, "AlreadyExists", "events exists");
  log.push_back("event " + uid);
  return {.status = 201, .body = "{}"};
}

kube::Response ModelServer::handle_node(const kube::Request& request, bool status) {
  if (request.method == "GET") {
    if (forbidden.contains("get nodes")) return refusal(403, "Forbidden", "nodes is forbidden");
    return ok(node_body());
  }
  if (forbidden.contains(status ? "patch nodes/status" : "patch nodes"))
    return refusal(403, "Forbidden", "nodes is forbidden");
  const auto patch = json::parse(request.body);
  if (status) {
    const auto* metadata = patch.as_object().if_contains("metadata");
    if (metadata != nullptr && text(metadata->at("resourceVersion")) != std::to_string(node.version))
      return refusal(409, "Conflict", "the object has been modified");
    for (const auto& condition : patch.at("status").at("conditions").as_array()) {
      const auto type = text(condition.at("type"));
      node.conditions[type] = text(condition.at("status"));
      node.reasons[type] = text(condition.at("reason"));
      node.messages[type] = text(condition.at("message"));
      node.heartbeat = text(condition.at("lastHeartbeatTime"));
      const auto* transition = condition.as_object().if_contains("lastTransitionTime");
      if (transition != nullptr) node.transitions[type] = text(*transition);
    }
    ++node.condition_patches;
    log.emplace_back("conditions");
  } else {
    if (text(patch.at("metadata").at("resourceVersion")) != std::to_string(node.version))
      return refusal(409, "Conflict", "the object has been modified");
    node.taints = json::serialize(patch.at("spec").at("taints"));
    ++node.taint_patches;
    log.emplace_back("taints");
  }
  ++node.version;
  return ok(node_body());
}

std::string ModelServer::node_body() const {
  json::array conditions;
  if (!node.conditions.contains("Ready")) conditions.push_back(json::object{{"type", "Ready"}, {"status", "True"}});
  for (const auto& [type, status] : node.conditions)
    conditions.push_back(json::object{
        {"type", type}, {"status", status}, {"reason", node.reasons.at(type)}, {"message", node.messages.at(type)}});
  return json::serialize(json::object{{"metadata", {{"resourceVersion", std::to_string(node.version)}}},
                                      {"spec", {{"taints", json::parse(node.taints)}}},
                                      {"status", {{"conditions", std::move(conditions)}}}});
}

void ModelServer::overwrite(const std::string& key, const std::string& phase) {
  auto& pod = pods.at(key);
  pod.phase = phase;
  pod.reason.clear();
  pod.last_patch.clear();
}

void ModelServer::write_ready(const std::string& status, const std::string& reason, const std::string& message) {
  node.conditions["Ready"] = status;
  node.reasons["Ready"] = reason;
  node.messages["Ready"] = message;
  ++node.version;
}

void ModelServer::toggle_foreign_taint() {
  const auto before = json::parse(node.taints);
  json::array after;
  bool there = false;
  for (const auto& taint : before.as_array()) {
    if (taint.at("key").as_string() == foreign)
      there = true;
    else
      after.push_back(taint);
  }
  if (!there) after.push_back(json::object{{"key", foreign}, {"effect", "NoSchedule"}});
  node.taints = json::serialize(after);
  ++node.version;
}

}  // namespace evictd::fixture
