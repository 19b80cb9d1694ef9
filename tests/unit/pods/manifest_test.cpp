#include "pods/manifest.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "fixture/pods.hpp"

namespace evictd::pods::manifest_test {
namespace {

using fixture::error_of;
using fixture::quantity;
using fixture::value_of;

std::vector<core::Pod> pods(std::string_view text) { return value_of(parse_pods(text, "pod.yaml")); }
core::Pod pod(std::string_view text) { return pods(text).at(0); }
std::string error(std::string_view text) { return error_of(parse_pods(text, "pod.yaml")); }

/// A pod with more in its spec than a name and a container.
core::Pod with_spec(const std::string& spec) {
  return pod("metadata: {name: a}\nspec:\n  containers: [{name: main}]\n" + spec);
}

}  // namespace

TEST_CASE("all that decides evictions is read from a pod") {
  const auto read = pod(R"(
apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: shop
  uid: 1234
  labels: {app: web}
  annotations: {kubernetes.io/config.source: file}
spec:
  schedulerName: passed-over
  priority: 7
  priorityClassName: important
  terminationGracePeriodSeconds: 12
  overhead: {memory: 64Mi}
  resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}
  tolerations: [{key: k, operator: Exists, value: v, effect: NoSchedule}]
  initContainers:
  - {name: proxy, restartPolicy: Always, resources: {requests: {cpu: 10m}}}
  - {name: setup, restartPolicy: OnFailure}
  containers:
  - {name: main, image: passed-over, resources: {requests: {memory: 100Mi}, limits: {memory: 200Mi}}}
status: {phase: Running, qosClass: Burstable}
)");
  CHECK(read.key() == "shop/web");
  CHECK(read.uid == "1234");
  CHECK(read.labels.at("app") == "web");
  CHECK(core::is_critical(read));
  CHECK(read.priority == 7);
  CHECK(read.priority_class_name == "important");
  CHECK(read.termination_grace_period_seconds == 12);
  CHECK(read.overhead.at("memory") == quantity("64Mi"));
  CHECK(read.resources->requests.at("memory") == quantity("1Gi"));
  CHECK(read.resources->limits.at("memory") == quantity("2Gi"));
  CHECK(read.tolerations.at(0) == core::Toleration{.key = "k", .op = "Exists", .value = "v", .effect = "NoSchedule"});
  REQUIRE(read.init_containers.size() == 2);
  CHECK(read.init_containers[0].restart_always);
  CHECK_FALSE(read.init_containers[1].restart_always);
  CHECK(read.containers.at(0).resources.requests.at("memory") == quantity("100Mi"));
  CHECK(read.containers.at(0).resources.limits.at("memory") == quantity("200Mi"));
  CHECK(read.status_qos == core::QosClass::Burstable);
}

TEST_CASE("a regular container that is always restarted is no sidecar") {
  const auto read = pod(R"(
metadata: {name: a}
spec: {containers: [{name: main, restartPolicy: Always}], initContainers: [{name: side, restartPolicy: Always}]}
)");
  CHECK_FALSE(read.containers.at(0).restart_always);
  CHECK(read.init_containers.at(0).restart_always);
}

TEST_CASE("volumes are read by what they take from the node") {
  using Kind = core::Volume::Kind;
  const auto read = with_spec(R"(
  volumes:
  - {name: disk, emptyDir: {}}
  - {name: tmpfs, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
  - {name: host, hostPath: {path: /}}
  - {name: config, configMap: {name: c}}
  - {name: git, gitRepo: {repository: r}}
  - {name: secret, secret: {secretName: s}}
)");
  REQUIRE(read.volumes.size() == 6);
  CHECK(read.volumes[0].kind == Kind::EmptyDir);
  CHECK_FALSE(read.volumes[0].size_limit.has_value());
  CHECK(read.volumes[1].medium == "Memory");
  CHECK(read.volumes[1].size_limit == quantity("64Mi"));
  CHECK(read.volumes[2].kind == Kind::HostPath);
  CHECK(read.volumes[3].kind == Kind::ConfigMap);
  CHECK(read.volumes[4].kind == Kind::GitRepo);
  CHECK(read.volumes[5].kind == Kind::Other);
}

TEST_CASE("what a pod leaves out is filled in as the API server would") {
  const auto read = pod("metadata: {name: a}\nspec: {containers: [{name: m, resources: {limits: {memory: 1Gi}}}]}");
  CHECK(read.key() == "default/a");
  CHECK_FALSE(read.priority.has_value());
  CHECK(read.containers[0].resources.requests.at("memory") == quantity("1Gi"));
}

TEST_CASE("a system priority class stands for its priority, unless the pod says its priority itself") {
  CHECK(with_spec("  priorityClassName: system-node-critical").priority == 2'000'001'000);
  CHECK(with_spec("  priorityClassName: system-cluster-critical").priority == 2'000'000'000);
  CHECK(with_spec("  priorityClassName: system-cluster-critical\n  priority: 5").priority == 5);
  CHECK_FALSE(with_spec("  priorityClassName: mine").priority.has_value());
}

TEST_CASE("requests are those that the status says were allocated, wherever it stands") {
  const auto read = pod(R"(
metadata: {name: a}
status:
  allocatedResources: {memory: 300Mi}
  resources: {limits: {memory: 9Gi}}
  conditions:
  - {type: Ready, reason: Infeasible}
  - {type: PodResizePending, status: "True", reason: Deferred}
  containerStatuses:
  - {name: main, ready: true, allocatedResources: {memory: 100Mi}, resources: {requests: {memory: 2Gi}}}
  - {name: gone, allocatedResources: {memory: 7Gi}}
  - {name: untold}
  initContainerStatuses:
  - {name: side, allocatedResources: {memory: 10Mi}, resources: {limits: {memory: 9Gi}}}
spec:
  resources: {requests: {memory: 1Gi}}
  initContainers:
  - {name: side, restartPolicy: Always, resources: {requests: {memory: 20Mi}}}
  containers:
  - {name: main, resources: {requests: {memory: 200Mi}, limits: {memory: 1Gi}}}
  - {name: untold, resources: {requests: {memory: 30Mi}}}
)");
  CHECK(read.containers.at(0).resources.requests.at("memory") == quantity("100Mi"));
  CHECK(read.containers[0].resources.limits.at("memory") == quantity("1Gi"));
  CHECK(read.containers.at(1).resources.requests.at("memory") == quantity("30Mi"));
  CHECK(read.init_containers.at(0).resources.requests.at("memory") == quantity("10Mi"));
  CHECK(read.resources->requests.at("memory") == quantity("300Mi"));
  CHECK(read.taken.value().at("memory") == quantity("1Gi"));  // as a whole; what main was given counts for nothing
  CHECK(read.status_qos == core::QosClass::Burstable);
}

TEST_CASE("what an infeasible resize asks for is not counted") {
  const auto read = pod(R"(
metadata: {name: a}
spec: {containers: [{name: main, resources: {requests: {memory: 9Gi}}}]}
status:
  conditions: [{type: PodResizePending, reason: Infeasible}]
  containerStatuses: [{name: main, allocatedResources: {memory: 1Gi}, resources: {requests: {memory: 2Gi}}}]
)");
  CHECK(read.taken.value().at("memory") == quantity("2Gi"));
}

TEST_CASE("a status without resources changes nothing, a wrong one is an error") {
  const std::string spec = "{metadata: {name: a}, spec: {containers: [{name: main}]}, status: ";
  for (const auto* status : {"{}", "{containerStatuses: null}", "{containerStatuses: []}",
                             "{containerStatuses: [{name: main, restartCount: 1}], conditions: [{type: Ready}]}"}) {
    CAPTURE(status);
    CHECK(pod(spec + status + "}") == with_spec(""));
  }
  CHECK(error(spec + "{containerStatuses: [{name: main, allocatedResources: {memory: 5x}}]}}") ==
        "pod.yaml:1: status.containerStatuses[0].allocatedResources: memory: \"5x\" is not a quantity such as 150Mi, "
        "1.5G or 500");
}

TEST_CASE("a null stands for an absent key") {
  const auto read = with_spec("  priority: null\n  volumes: ~\n  overhead:");
  CHECK_FALSE(read.priority.has_value());
  CHECK(read.volumes.empty());
}

TEST_CASE("several documents, a List and a PodList all give their pods in order") {
  constexpr auto* spec = "spec: {containers: [{name: m}]}";
  const std::string a = std::string("{metadata: {name: a}, ") + spec + "}";
  const std::string b = std::string("{metadata: {name: b}, ") + spec + "}";
  for (const auto& text :
       {a + "\n---\n" + b, "---\n" + a + "\n---\n---\n" + b + "\n---\n",
        "{kind: List, apiVersion: v1, items: [" + a + ", " + b + "]}", "{kind: PodList, items: [" + a + ", " + b + "]}",
        "{kind: List, items: [" + a + "]}\n---\n" + b}) {
    CAPTURE(text);
    const auto read = pods(text);
    REQUIRE(read.size() == 2);
    CHECK(read[0].name == "a");
    CHECK(read[1].name == "b");
  }
}

TEST_CASE("JSON is read as well") {
  const auto read = pod(R"({"metadata": {"name": "a"}, "spec": {"priority": -3, "containers":
    [{"name": "m", "resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}]}})");
  CHECK(read.priority == -3);
  CHECK(read.containers[0].resources.requests.at("cpu") == quantity("1"));
}

TEST_CASE("an error names file, line and key") {
  CHECK(error("metadata: {name: a}\nspec:\n  containers:\n  - name: m\n    resources:\n      requests: {memory: 5x}") ==
        "pod.yaml:6: spec.containers[0].resources.requests: memory: \"5x\" is not a quantity such as 150Mi, 1.5G or "
        "500");
  CHECK(error("metadata: {name: a}\nspec: {containers: [{name: m, resources: {limits: {cpu: -1}}}]}") ==
        "pod.yaml:2: spec.containers[0].resources.limits: cpu: \"-1\" must not be negative");
  CHECK(error("metadata: {namespace: x}\nspec: {containers: [{name: m}]}") == "pod.yaml:1: metadata: name is missing");
  CHECK(error("spec: {containers: [{name: m}]}") == "pod.yaml:1: metadata is missing");
  CHECK(error("metadata: {name: a}") == "pod.yaml:1: spec is missing");
  CHECK(error("metadata: {name: a}\nspec: {}") == "pod.yaml:2: spec: containers is missing");
  CHECK(error("metadata: {name: a}\nspec:\n  containers: {name: m}") ==
        "pod.yaml:3: spec.containers: a mapping stands where a list is expected");
  CHECK(error("metadata: {name: a}\nspec: {containers: [{image: i}]}") ==
        "pod.yaml:2: spec.containers[0]: name is missing");
  CHECK(error("metadata: {name: a}\nspec: {containers: [{name: m}, {name: m}]}") ==
        "pod.yaml:2: spec.containers: two containers are called \"m\"");
  CHECK(error("metadata: {name: a}\nspec:\n  containers: [{name: m}]\n  initContainers: [{name: i}, {name: m}]")
            .ends_with(": two containers are called \"m\""));
  CHECK(error("metadata: {name: a}\nspec: {priority: high, containers: [{name: m}]}") ==
        "pod.yaml:2: spec.priority: \"high\" is not a whole number");
  CHECK(error("metadata: {name: a}\nspec: {priority: 2147483648, containers: [{name: m}]}") ==
        "pod.yaml:2: spec.priority: \"2147483648\" is out of range: -2147483648 to 2147483647");
  CHECK(error("metadata: {name: a}\nspec: {containers: [{name: m}]}\nstatus: {qosClass: Gold}") ==
        "pod.yaml:3: status.qosClass: \"Gold\" is no QoS class");
}

TEST_CASE("what is no pod is an error") {
  CHECK(error("") == "pod.yaml: there is no pod in it");
  CHECK(error("{kind: List, items: []}") == "pod.yaml: there is no pod in it");
  CHECK(error("{kind: List}") == "pod.yaml:1: items is missing");
  CHECK(error("kind: Service\nmetadata: {name: a}") == "pod.yaml:1: kind: \"Service\" where \"Pod\" is expected");
  CHECK(error("apiVersion: v2\nkind: Pod") == "pod.yaml:1: apiVersion: \"v2\" where \"v1\" is expected");
  CHECK(error("{kind: List, items: [{kind: List, items: []}]}") ==
        "pod.yaml:1: items[0].kind: \"List\" where \"Pod\" is expected");
  CHECK(error("just text") == "pod.yaml:1: \"just text\" stands where a mapping is expected");
  CHECK(error("a: [1,").starts_with("pod.yaml:"));
}

TEST_CASE("a pod in JSON is the same pod, and its error has no line") {
  const std::string_view text = R"({"metadata": {"name": "a", "uid": "1"}, "spec": {"priority": 7,
    "containers": [{"name": "main", "resources": {"limits": {"memory": "64Mi"}}}]}, "status": {"qosClass": "Burstable"}})";
  std::vector<Error> doubts;
  CHECK(value_of(parse_pod_json(text, "the API server", doubts)) == pod(text));
  CHECK(error_of(parse_pod_json(R"({"metadata": {"name": "a"}, "spec": {"priority": "x", "containers": []}})", "api",
                                doubts))
            .starts_with("api: spec.priority: "));
  CHECK(doubts.empty());
}

namespace {

/// As the API server's source reads it.
struct Told {
  core::Pod pod{};
  std::vector<Error> doubts{};

  explicit Told(const std::string& spec, const std::string& container = {}, const std::string& rest = {}) {
    pod = value_of(parse_pod_json(R"({"metadata": {"name": "a", "namespace": "shop"}, "spec": {)" + spec +
                                      R"("containers": [{"name": "main")" + container + "}]}" + rest + "}",
                                  "api", doubts));
  }
  [[nodiscard]] std::string doubt() const {
    REQUIRE(doubts.size() == 1);
    return doubts[0].message;
  }
};

}  // namespace

TEST_CASE("an amount of any size is one of a pod that Kubernetes has taken") {
  const Told told{R"("volumes": [{"name": "t", "emptyDir": {"sizeLimit": "1e30"}}],
                     "overhead": {"memory": "1E400"}, "resources": {"limits": {"cpu": "1e40"}}, "priority": 7,)",
                  R"(, "resources": {"limits": {"memory": "1e2147483647"}, "requests": {"cpu": "0.1n"}})"};
  CHECK(told.doubts.empty());
  const auto most = quantity("1e29");
  CHECK(told.pod.priority == 7);
  CHECK(told.pod.volumes.at(0).size_limit == most);
  CHECK(told.pod.overhead.at("memory") == most);
  CHECK(told.pod.resources->limits.at("cpu") == most);
  CHECK(told.pod.containers[0].resources.limits.at("memory") == most);
  CHECK(told.pod.containers[0].resources.requests.at("memory") == most);
  CHECK(told.pod.containers[0].resources.requests.at("cpu") == quantity("1n"));
}

TEST_CASE("a grace period below zero is one, as the API server takes it") {
  const Told told{R"("terminationGracePeriodSeconds": -1,)"};
  CHECK(told.doubts.empty());
  CHECK(told.pod.termination_grace_period_seconds == -1);
  CHECK(with_spec("  terminationGracePeriodSeconds: -9223372036854775808").termination_grace_period_seconds ==
        std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("a field of the API server's that cannot be read costs itself and not the pod, and one is told") {
  const std::string priority = R"("priority": 7,)";
  const auto spec = [&](const std::string& field) { return Told{field + "," + priority}; };
  const auto volume = spec(R"("volumes": [{"name": "t", "emptyDir": {"medium": "Memory", "sizeLimit": "5x"}}])");
  CHECK(volume.doubt() ==
        "api: shop/a: spec.volumes[0].emptyDir.sizeLimit: \"5x\" is not a quantity such as 150Mi, 1.5G or 500");
  CHECK(volume.pod.priority == 7);
  CHECK(volume.pod.volumes.at(0).medium == "Memory");
  CHECK_FALSE(volume.pod.volumes.at(0).size_limit);

  const Told resources{priority, R"(, "resources": {"requests": {"memory": "-5", "cpu": "1"}, "limits": 7})"};
  CHECK(resources.doubts.size() == 1);  // the first
  CHECK(resources.doubt().starts_with("api: shop/a: spec.containers[0].resources.requests: memory: "));
  CHECK(resources.pod.containers[0].resources.requests.size() == 1);
  CHECK(resources.pod.containers[0].resources.limits.empty());

  CHECK_FALSE(spec(R"("resources": 7)").pod.resources);
  CHECK_FALSE(spec(R"("terminationGracePeriodSeconds": "soon")").pod.termination_grace_period_seconds);
  CHECK(spec(R"("hostUsers": "maybe")").pod.host_users);
  const auto affinity = [&](const std::string& required) {
    return spec(R"("affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": )" + required +
                "}}");
  };
  CHECK_FALSE(affinity("7").pod.required_node_affinity);
  // It holds for no node, as for a kubelet that does not know it.
  const auto unknown = affinity(R"({"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Near"}]}]})");
  REQUIRE(unknown.pod.required_node_affinity);
  CHECK(unknown.pod.required_node_affinity->at(0).match_expressions.at(0).op == "Near");
  CHECK_FALSE(spec(R"("securityContext": {"appArmorProfile": 7})").pod.app_armor_profile);
  const Told hook{priority, R"(, "lifecycle": {"preStop": {"exec": {"command": [{}]}}}, "ports": [{"hostPort": 1e9}])"};
  CHECK_FALSE(hook.pod.containers[0].pre_stop);
  CHECK(hook.pod.containers[0].host_ports.empty());
  const Told status{priority, {}, R"(, "status": {"qosClass": "Gold", "phase": "Running",
      "containerStatuses": [{"name": "main", "allocatedResources": 7}]})"};
  CHECK(status.doubt().starts_with("api: shop/a: status.qosClass: "));
  CHECK_FALSE(status.pod.status_qos);
  CHECK(status.pod.phase == "Running");
  CHECK_FALSE(status.pod.taken);
}

TEST_CASE("a pod of which nothing is left is told by what of it cannot be read") {
  std::vector<Error> doubts;
  const auto error = [&](const std::string& spec) {
    return error_of(parse_pod_json(R"({"metadata": {"name": "a"}, "spec": )" + spec + "}", "api", doubts));
  };
  CHECK(error(R"({"containers": 7})") == "api: spec.containers: \"7\" stands where a list is expected");
  CHECK(error("7") == "api: spec: \"7\" stands where a mapping is expected");
  CHECK(error(R"({"containers": []})") == "api: spec: containers is missing");
  CHECK(doubts.empty());
}

TEST_CASE("one pod of a list that cannot be read costs only itself") {
  const auto list = value_of(parse_pod_list_json(R"({"kind": "PodList", "apiVersion": "v1", "items": [
    {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main"}]}},
    {"metadata": {"name": "b"}, "spec": {"containers": []}},
    {"metadata": {"name": "c"}, "spec": {"containers": [{"name": "main"}]}}]})",
                                                 "kubelet"));
  REQUIRE(list.pods.size() == 2);
  CHECK(list.pods[1].key() == "default/c");
  REQUIRE(list.errors.size() == 1);
  CHECK(list.errors[0].message.starts_with("kubelet: items[1]"));
  CHECK(list.doubts.empty());
}

TEST_CASE("of a list's pods each has a field that cannot be read told by its name, wherever in the list it stands") {
  const auto list = value_of(parse_pod_list_json(R"({"kind": "PodList", "apiVersion": "v1", "items": [
    {"metadata": {"name": "a"}, "spec": {"priority": 1, "hostIPC": 7, "containers": [{"name": "main"}]}},
    {"metadata": {"name": "b"}, "spec": {"priority": 2, "containers": [{"name": "main"}]}},
    {"metadata": {"name": "c"}, "spec": {"hostIPC": 8, "priority": 3, "os": 7, "containers": [{"name": "main"}]}}]})",
                                                 "kubelet"));
  CHECK(list.errors.empty());
  REQUIRE(list.pods.size() == 3);
  for (int i = 0; i < 3; ++i) CHECK(list.pods[static_cast<std::size_t>(i)].priority == i + 1);
  REQUIRE(list.doubts.size() == 2);
  CHECK(list.doubts[0].message == "kubelet: default/a: spec.hostIPC: \"7\" is not true or false");
  CHECK(list.doubts[1].message == "kubelet: default/c: spec.hostIPC: \"8\" is not true or false");
}

TEST_CASE("a list of pods may be empty, but must be one") {
  for (const auto* items : {"[]", "null"}) {
    const auto list = value_of(parse_pod_list_json(std::string(R"({"kind": "PodList", "items": )") + items + "}", "k"));
    CHECK(list.pods.empty());
  }
  CHECK(error_of(parse_pod_list_json(R"({"kind": "Status", "message": "no"})", "k")) == "k: is no list of pods");
}

}  // namespace evictd::pods::manifest_test
