#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/json.hpp>
#include <set>
#include <string>

#include "control_plane.hpp"
#include "manifests.hpp"
#include "programs.hpp"

namespace kubernetes::rbac_test {

namespace json = boost::json;

namespace {

const std::filesystem::path manifests = manifest_directory();
constexpr auto pod = R"(
apiVersion: v1
kind: Pod
metadata: {name: hog}
spec: {nodeName: evictd-node, containers: [{name: main, image: "evictd.test/load:1"}]}
)";
constexpr auto node = "{apiVersion: v1, kind: Node, metadata: {name: evictd-node}}";
constexpr auto event = R"(
apiVersion: v1
kind: Event
metadata: {name: hog.1}
involvedObject: {kind: Pod, namespace: default, name: hog}
reason: Evicted
)";
constexpr auto evicted = R"({"status": {"phase": "Failed", "reason": "Evicted"}})";
constexpr auto pressure = R"({"status": {"conditions": [{"type": "MemoryPressure", "status": "True"}]}})";
constexpr auto taint =
    R"({"spec": {"taints": [{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}]}})";
constexpr auto anything = R"({"metadata": {"labels": {"a": "b"}}})";
constexpr auto strategic = "application/strategic-merge-patch+json";

/// Everything that these files bring: tools/deploy/kubernetes itself, and a variant of it.
void deploy(const ControlPlane& control_plane, const std::string& variant = "") {
  for (const auto& manifest : read_manifests(manifests)) expect_success(create(control_plane.admin(), manifest));
  if (variant.empty()) return;
  for (const auto& manifest : read_manifests(manifests / "variants" / variant))
    expect_success(create(control_plane.admin(), manifest));
}

ApiClient agent(const ControlPlane& control_plane) {
  return control_plane.client(control_plane.service_account_token("evictd", "evictd"));
}

/// An account that nobody gave anything: what it may do, everybody may.
ApiClient nobody(const ControlPlane& control_plane) {
  expect_success(control_plane.admin().create("/api/v1/namespaces/default/serviceaccounts",
                                              "{apiVersion: v1, kind: ServiceAccount, metadata: {name: nobody}}"));
  return control_plane.client(control_plane.service_account_token("default", "nobody"));
}

/// What the API server says that a client may do: "patch pods/status", "get apps/deployments", "get /healthz".
std::set<std::string> rights(const ApiClient& client) {
  const auto answer = expect_success(
      client.create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
                    "{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectRulesReview, spec: {namespace: default}}"));
  const auto document = json::parse(answer.body);
  const auto& status = document.at("status");
  REQUIRE_FALSE(status.at("incomplete").as_bool());
  std::set<std::string> result;
  for (const auto& rule : status.at("resourceRules").as_array())
    for (const auto& verb : rule.at("verbs").as_array())
      for (const auto& group : rule.at("apiGroups").as_array())
        for (const auto& resource : rule.at("resources").as_array())
          result.insert(fmt::format("{} {}{}{}", verb.as_string().c_str(), group.as_string().c_str(),
                                    group.as_string().empty() ? "" : "/", resource.as_string().c_str()));
  for (const auto& rule : status.at("nonResourceRules").as_array())
    for (const auto& verb : rule.at("verbs").as_array())
      for (const auto& url : rule.at("nonResourceURLs").as_array())
        result.insert(fmt::format("{} {}", verb.as_string().c_str(), url.as_string().c_str()));
  return result;
}

std::set<std::string> rights_beyond_everybodys(const ControlPlane& control_plane) {
  auto own = rights(agent(control_plane));
  for (const auto& right : rights(nobody(control_plane))) own.erase(right);
  return own;
}

struct Attempt {
  ApiClient::Request request;
  int status;  ///< that is expected
};

}  // namespace

TEST_CASE("evictd's account may do what it needs and nothing else; each variant adds what it names") {
  const ControlPlane control_plane;
  std::set<std::string> wanted{"get pods",  "list pods",  "watch pods",  "patch pods/status", "create events",
                               "get nodes", "list nodes", "watch nodes", "patch nodes",       "patch nodes/status"};
  SUBCASE("as it is") { deploy(control_plane); }
  SUBCASE("for report: delete") {
    deploy(control_plane, "report-delete.yaml");
    wanted.insert("delete pods");
  }
  SUBCASE("for the source kubelet") {
    deploy(control_plane, "kubelet-source.yaml");
    wanted.insert({"get nodes/pods", "get nodes/configz"});
  }
  SUBCASE("for the source kubelet before Kubernetes 1.33") {
    deploy(control_plane, "kubelet-source-before-1.33.yaml");
    wanted.insert("get nodes/proxy");
  }
  CHECK(rights_beyond_everybodys(control_plane) == wanted);
}

TEST_CASE("with evictd's account its calls succeed, and what harms a cluster is forbidden") {
  const ControlPlane control_plane;
  deploy(control_plane);
  const auto& admin = control_plane.admin();
  expect_success(admin.create("/api/v1/nodes", node));
  expect_success(admin.create("/api/v1/namespaces/default/pods", pod));
  const auto evictd = agent(control_plane);

  const std::string pods = "/api/v1/namespaces/default/pods";
  const std::string events = "/api/v1/namespaces/default/events";
  const std::string nodes = "/api/v1/nodes";
  const std::string own_node = nodes + "/evictd-node";
  const std::string merge = "application/merge-patch+json";
  const std::string yaml = "application/yaml";
  const std::vector<Attempt> attempts{
      {{.path = "/api/v1/pods?fieldSelector=spec.nodeName%3Devictd-node"}, 200},
      {{.path = "/api/v1/pods?watch=true&timeoutSeconds=1&allowWatchBookmarks=true"}, 200},
      {{.path = pods + "/hog"}, 200},
      {{.method = "PATCH", .path = pods + "/hog/status", .body = evicted, .content_type = strategic}, 200},
      {{.method = "PATCH", .path = pods + "/hog/status", .body = evicted, .content_type = merge}, 200},
      {{.method = "POST", .path = events, .body = event, .content_type = yaml}, 201},
      {{.path = own_node}, 200},
      {{.path = nodes + "?fieldSelector=metadata.name%3Devictd-node"}, 200},
      {{.path = nodes + "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Devictd-node"}, 200},
      {{.method = "PATCH", .path = own_node + "/status", .body = pressure, .content_type = strategic}, 200},
      {{.method = "PATCH", .path = own_node, .body = taint, .content_type = strategic}, 200},

      {{.method = "POST", .path = pods, .body = pod, .content_type = yaml}, 403},
      {{.method = "PATCH", .path = pods + "/hog", .body = anything, .content_type = merge}, 403},
      {{.method = "PUT", .path = pods + "/hog/status", .body = pod, .content_type = yaml}, 403},
      {{.method = "DELETE", .path = pods + "/hog"}, 403},
      {{.method = "DELETE", .path = pods}, 403},
      {{.method = "PATCH", .path = events + "/hog.1", .body = anything, .content_type = merge}, 403},
      {{.method = "POST", .path = pods + "/hog/eviction", .body = "{}", .content_type = yaml}, 403},
      {{.method = "POST", .path = pods + "/hog/exec?command=sh"}, 403},
      {{.path = pods + "/hog/log"}, 403},
      {{.method = "POST", .path = nodes, .body = node, .content_type = yaml}, 403},
      {{.method = "DELETE", .path = own_node}, 403},
      {{.path = own_node + "/proxy/pods"}, 403},
      {{.path = events}, 403},
      {{.method = "DELETE", .path = events + "/hog.1"}, 403},
      {{.path = "/api/v1/namespaces/kube-system/secrets"}, 403},
      {{.path = "/api/v1/namespaces/evictd/configmaps/evictd"}, 403},
      {{.path = "/api/v1/namespaces"}, 403},
      {{.path = "/apis/apps/v1/namespaces/evictd/daemonsets/evictd"}, 403},
      {{.method = "POST",
        .path = "/api/v1/namespaces/evictd/serviceaccounts/evictd/token",
        .body = "{}",
        .content_type = yaml},
       403},
      {{.path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"}, 403},
      {{.path = "/metrics"}, 403},
  };
  for (const auto& [request, status] : attempts) {
    const auto answer = evictd.send(request);
    CHECK_MESSAGE(answer.status == status, request.method, " ", request.path, ": ", answer.status, " ", answer.body);
  }
  const auto hog = admin.get(pods + "/hog");
  CHECK(hog.at("/status/phase") == "Failed");
  CHECK(hog.at("/status/reason") == "Evicted");
  CHECK(admin.get(own_node).at("/spec/taints").find("memory-pressure") != std::string::npos);
}

TEST_CASE("the API server accepts every manifest that is deployed") {
  const ControlPlane control_plane;
  const auto& admin = control_plane.admin();
  // A namespace must be there for what is in it.
  expect_success(admin.create("/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: evictd}}"));
  std::vector<std::string> kinds;
  for (const auto& directory : {manifests, manifests / "variants"}) {
    for (const auto& manifest : read_manifests(directory)) {
      if (directory == manifests) kinds.push_back(manifest.kind);
      if (manifest.kind == "Namespace") continue;
      const auto answer = create(admin, manifest, true);
      CHECK_MESSAGE(answer.status == 201, manifest.kind, " ", manifest.name, ": ", answer.status, " ", answer.body);
      CHECK(admin.get(manifest.path() + "/" + manifest.name).status == 404);  // a dry run
    }
  }
  CHECK(kinds == std::vector<std::string>{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding",
                                          "ConfigMap", "DaemonSet"});
}

}  // namespace kubernetes::rbac_test
