#include "benchmarks/cluster_objects.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <charconv>
#include <utility>

namespace bench {

namespace json = boost::json;

namespace {

/// Who wrote which field: a third to a half of a real pod. Here it is also in the place of what else a pod of two
/// containers has and nobody here looks at: its environment, probes, volumes, and its containers' statuses.
std::string managed_fields() {
  json::object fields;
  for (int i = 0; i < 151; ++i) fields[fmt::format("f:someFieldOfThePod{}", i)] = {{".", json::object{}}};
  return json::serialize(json::array{json::object{{"manager", "kube-controller-manager"},
                                                  {"operation", "Update"},
                                                  {"apiVersion", "v1"},
                                                  {"fieldsType", "FieldsV1"},
                                                  {"fieldsV1", {{"f:spec", std::move(fields)}}}}});
}

std::string containers() {
  json::array both;
  for (const auto* name : {"app", "proxy"})
    both.push_back(json::object{
        {"name", name},
        {"resources",
         {{"limits", {{"cpu", "1"}, {"memory", "512Mi"}}}, {"requests", {{"cpu", "100m"}, {"memory", "256Mi"}}}}}});
  return json::serialize(both);
}

/// A node lists 50 of its images; they are most of it.
std::string node_images() {
  json::array images;
  for (int i = 0; i < 50; ++i)
    images.push_back(json::object{
        {"names", json::array{fmt::format("registry.example/team/image-{}@sha256:{}", i, std::string(64, 'b')),
                              fmt::format("registry.example/team/image-{}:1.2.3", i)}},
        {"sizeBytes", 123456789}});
  return json::serialize(images);
}

}  // namespace

int number_after(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  if (at == std::string_view::npos) return -1;
  int number = -1;
  const auto rest = text.substr(at + word.size());
  std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return number;
}

ClusterObjects::ClusterObjects(int nodes, int pods)
    : pods_{pods},
      nodes_(static_cast<std::size_t>(nodes), Node{.pods = std::vector<Pod>(static_cast<std::size_t>(pods))}),
      containers_{containers()},
      managed_fields_{managed_fields()},
      node_images_{node_images()} {}

std::string ClusterObjects::pod_json(int node, int pod) const {
  const auto& state = nodes_.at(static_cast<std::size_t>(node)).pods.at(static_cast<std::size_t>(pod));
  return fmt::format(R"({{"metadata":{{"name":"node-{0}-pod-{1}","namespace":"default","uid":"node-{0}-pod-{1}-uid",)"
                     R"("resourceVersion":"{2}","creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app":"app"}},)"
                     R"("managedFields":{3}}},"spec":{{"nodeName":"node-{0}","containers":{4}}},)"
                     R"("status":{{{5},"qosClass":"Burstable"}}}})",
                     node, pod, state.version, managed_fields_, containers_,
                     state.failed ? R"("phase":"Failed","reason":"Evicted")" : R"("phase":"Running")");
}

std::string ClusterObjects::node_json(int node) const {
  const auto& [version, conditions, taints, pods] = nodes_.at(static_cast<std::size_t>(node));
  return fmt::format(R"({{"kind":"Node","apiVersion":"v1","metadata":{{"name":"node-{}","resourceVersion":"{}"}},)"
                     R"("spec":{{"taints":{}}},"status":{{"conditions":{},"images":{}}}}})",
                     node, version, taints, conditions, node_images_);
}

std::string ClusterObjects::list(int node) const {
  auto text =
      fmt::format(R"({{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{}"}},"items":[)", version_);
  for (int pod = 0; pod < pods_; ++pod) text += (pod == 0 ? "" : ",") + pod_json(node, pod);
  return text + "]}";
}

std::string ClusterObjects::bookmark() const {
  return fmt::format(R"({{"type":"BOOKMARK","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{)"
                     R"("resourceVersion":"{}","creationTimestamp":null}},"spec":{{"containers":null}},)"
                     R"("status":{{}}}}}})"
                     "\n",
                     version_);
}

ClusterObjects::Handled ClusterObjects::handle(std::string_view method, std::string_view target,
                                               const std::string& body) {
  constexpr std::string_view no_body = R"({"kind":"Status","message":"not found","reason":"NotFound","code":404})";
  Handled handled{.node = number_after(target, "node-"), .status = 404, .body = std::string(no_body)};
  if (target.ends_with("/events")) handled.node = number_after(body, "node-");
  if (handled.node < 0 || handled.node >= static_cast<int>(nodes_.size())) return handled;
  const int pod = number_after(target, "-pod-");
  handled.status = 200;
  if (method == "GET" && target.starts_with("/api/v1/pods?")) {
    handled.call = target.contains("watch=true") ? Call::Watch : Call::List;
    handled.body = handled.call == Call::List ? list(handled.node) : std::string();
  } else if (method == "GET" && target.starts_with("/api/v1/nodes/")) {
    handled.call = Call::ReadNode;
    handled.body = node_json(handled.node);
  } else if (method == "GET" && target.starts_with("/api/v1/namespaces/") && pod >= 0 && pod < pods_) {
    handled.call = Call::ReadPod;
    handled.body = pod_json(handled.node, pod);
  } else if (method == "PATCH" && target.starts_with("/api/v1/nodes/")) {
    patch_node(handled, target.ends_with("/status"), body);
  } else if (method == "PATCH" && target.ends_with("/status") && pod >= 0 && pod < pods_) {
    patch_pod(handled, pod, body);
  } else if (method == "POST" && target.ends_with("/events")) {
    create_event(handled, body);
  } else {
    handled.status = 404;
  }
  return handled;
}

void ClusterObjects::patch_node(Handled& handled, bool status, const std::string& body) {
  auto& node = nodes_[static_cast<std::size_t>(handled.node)];
  handled.call = status ? Call::Conditions : Call::Taints;
  const auto patch = json::parse(body);
  if (status) {
    node.conditions = json::serialize(patch.at("status").at("conditions"));
  } else if (patch.at("metadata").at("resourceVersion").as_string() != std::to_string(node.version)) {
    handled.status = 409;
    handled.body = R"({"kind":"Status","message":"the object has been modified","reason":"Conflict","code":409})";
    return;
  } else {
    node.taints = json::serialize(patch.at("spec").at("taints"));
  }
  node.version = ++version_;
  handled.body = node_json(handled.node);
}

void ClusterObjects::patch_pod(Handled& handled, int pod, const std::string& body) {
  auto& state = nodes_.at(static_cast<std::size_t>(handled.node)).pods.at(static_cast<std::size_t>(pod));
  handled.call = Call::PodStatus;
  const auto patch = json::parse(body);
  const bool fails = patch.at("status").at("phase").as_string() == "Failed";
  ++(state.failed || !fails ? told_.again : told_.statuses);
  state = {.version = ++version_, .failed = fails};
  handled.body = pod_json(handled.node, pod);
  handled.change = fmt::format(R"({{"type":"MODIFIED","object":{}}})", handled.body) + "\n";
}

void ClusterObjects::create_event(Handled& handled, const std::string& body) {
  const auto event = json::parse(body);
  const bool about_pod = event.at("reason").as_string() == "Evicted";
  handled.call = about_pod ? Call::PodEvent : Call::NodeEvent;
  handled.status = 201;
  handled.body = body;
  const bool is_new = events_.emplace(event.at("metadata").at("name").as_string()).second;
  if (about_pod) ++(is_new ? told_.events : told_.again);
  if (is_new) return;
  handled.status = 409;
  handled.body = R"({"kind":"Status","message":"exists","reason":"AlreadyExists","code":409})";
}

}  // namespace bench
