#include "pods/assemble.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <list>

#include "core/pod_resources.hpp"
#include "core/qos.hpp"
#include "fixture/pods.hpp"
#include "pods/pod_builder.hpp"
#include "pods/verbose_fixtures.hpp"

namespace evictd::pods::assemble_test {

using namespace evictd;
using core::QosClass;
using pods::ContainerState;
namespace v1 = ::runtime::v1;

namespace {

constexpr std::int64_t MiB = 1 << 20;
constexpr std::int64_t capacity = 1000 * MiB;  // so that one point of oom_score_adj is one MiB

/// Builds a pod from what a test says of its sandbox and containers.
struct Builder {
  v1::PodSandbox sandbox = test::sandbox("s1", "web", "u1");
  std::string sandbox_info = test::sandbox_json("/kubepods/burstable/podu1");
  std::list<v1::Container> listed;
  std::list<pods::ContainerFacts> facts;
  std::vector<pods::KnownContainer> containers;
  pods::TrustedNamespaces trusted{{"*"}};
  std::vector<Error> warnings;

  Builder& add(v1::Container container, const std::string& info, const v1::LinuxContainerResources* given = nullptr) {
    v1::ContainerStatusResponse status;
    status.mutable_status()->set_state(container.state());
    if (given) *status.mutable_status()->mutable_resources()->mutable_linux() = *given;
    (*status.mutable_info())["info"] = info;
    listed.push_back(std::move(container));
    facts.push_back(pods::ContainerFacts::of(status));
    containers.push_back({&listed.back(), &facts.back()});
    return *this;
  }

  pods::RuntimePod build() {
    v1::PodSandboxStatusResponse status;
    (*status.mutable_info())["info"] = sandbox_info;
    warnings.clear();
    return pods::assemble(sandbox, pods::SandboxFacts::of(status), containers, capacity, trusted, warnings);
  }
};

std::vector<std::string> names(const core::Pod& pod) {
  std::vector<std::string> names;
  for (const auto& container : pod.containers) names.push_back(container.name);
  return names;
}

}  // namespace

TEST_CASE("a pod as containerd shows it: identity, class, request, limit, grace period and cgroups") {
  Builder b;
  const std::string uid = "0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11";
  b.sandbox = test::sandbox("0d091237", "web", uid);
  (*b.sandbox.mutable_labels())["app"] = "web";
  (*b.sandbox.mutable_annotations())["evictd.io/priority"] = "1000";
  (*b.sandbox.mutable_annotations())["kubernetes.io/config.source"] = "file";
  b.sandbox_info = test::sandbox_info;
  auto server = test::container("691c8360", "0d091237", "server");
  (*server.mutable_annotations())["io.kubernetes.pod.terminationGracePeriod"] = "30";
  b.add(server, std::string(test::burstable_container_info));

  const auto runtime_pod = b.build();
  const auto& pod = *runtime_pod.pod;
  CHECK(pod.key() == "shop/web");
  CHECK(pod.uid == uid);
  CHECK(pod.labels.at("app") == "web");
  CHECK(pod.priority == 1000);
  CHECK(core::is_critical(pod));  // its annotations pass through: a static pod
  CHECK(pod.status_qos == QosClass::Burstable);
  CHECK(pod.termination_grace_period_seconds == 30);
  REQUIRE(names(pod) == std::vector<std::string>{"server"});
  CHECK(pod.containers[0].resources.limits.at("memory").value() == 64 * MiB);
  CHECK(pod.containers[0].resources.requests.at("memory").value() == 32 * MiB);
  CHECK(pod.containers[0].resources.requests.at("cpu").milli_value() == 100);

  CHECK(runtime_pod.sandbox_id == "0d091237");
  CHECK(runtime_pod.cgroup_parent == "/kubepods/burstable/pod" + uid);
  CHECK(runtime_pod.cgroup == "/kubepods/burstable/pod" + uid);
  REQUIRE(runtime_pod.containers.size() == 1);
  CHECK(runtime_pod.containers[0] ==
        pods::RuntimeContainer{.id = "691c8360",
                               .name = "server",
                               .state = ContainerState::Running,
                               .pid = 6524,
                               .cgroup = "/kubepods/burstable/pod" + uid +
                                         "/691c8360e743a6e922fb2cbd382e5157d4fff999f8b26ef4c2f88ff6a1e1e906"});
  CHECK(b.warnings.empty());
}

TEST_CASE("the cgroup decides the QoS class, whatever the oom_score_adj") {
  Builder b;
  b.sandbox_info = test::sandbox_json("/kubepods/burstable/podu1");
  b.add(test::container("c1", "s1", "kube-proxy"), test::container_json(-997, 64 * MiB));  // a system-node-critical pod
  const auto pod = b.build().pod;
  CHECK(pod->status_qos == QosClass::Burstable);
  CHECK(pod->containers[0].resources.requests.empty());
}

TEST_CASE("a pod without a cgroup of its own has its QoS class from the oom_score_adj, and no cgroup to kill") {
  Builder b;
  b.sandbox_info = test::sandbox_json("/shared");
  b.add(test::container("c1", "s1", "app"), test::container_json(900, 0, 0, "/shared/c1"));
  const auto runtime_pod = b.build();
  CHECK(runtime_pod.pod->status_qos == QosClass::Burstable);
  CHECK(runtime_pod.pod->containers[0].resources.requests.at("memory").value() == 100 * MiB);
  CHECK(runtime_pod.cgroup_parent == "/shared");
  CHECK(runtime_pod.cgroup.empty());
  CHECK(runtime_pod.containers[0].cgroup == "/shared/c1");
}

TEST_CASE("what a container was given since it was created counts, and its oom_score_adj as it was asked for") {
  Builder b;
  v1::LinuxContainerResources given;
  given.set_memory_limit_in_bytes(256 * MiB);
  given.set_cpu_shares(512);
  given.set_cpu_quota(100'000);
  given.set_cpu_period(100'000);
  const auto resources = [&] { return b.build().pod->containers.at(0).resources; };

  SUBCASE("of a Burstable pod") {
    b.add(test::container("c1", "s1", "app"), test::container_json(950, 64 * MiB), &given);
    CHECK(resources().requests == fixture::amounts({{"cpu", "500m"}, {"memory", "50Mi"}}));
  }
  SUBCASE("of a Guaranteed pod") {
    b.sandbox_info = test::sandbox_json("/kubepods/podu1");
    b.add(test::container("c1", "s1", "app"), test::container_json(-997, 64 * MiB), &given);
    CHECK(resources().requests == fixture::amounts({{"cpu", "1"}, {"memory", "256Mi"}}));
  }
  CHECK(resources().limits == fixture::amounts({{"cpu", "1"}, {"memory", "256Mi"}}));
}

TEST_CASE("what a status does not tell that a container was given stays as it was created") {
  Builder b;
  v1::LinuxContainerResources given;
  given.set_memory_limit_in_bytes(-1);
  given.set_cpu_quota(-1);
  given.set_cpu_period(100'000);
  b.sandbox_info = test::sandbox_json("/kubepods/podu1");
  b.add(test::container("c1", "s1", "app"), std::string(test::guaranteed_container_info), &given);
  const auto pod = b.build().pod;
  CHECK(pod->containers.at(0).resources.requests == fixture::amounts({{"cpu", "500m"}, {"memory", "64Mi"}}));
}

TEST_CASE("the node's ports are the pod's where nobody has a spec, and those of its containers where it is annotated") {
  Builder b;
  b.sandbox_info = R"({"config":{"port_mappings":[{"container_port":80,"host_port":8080}]}})";
  b.add(test::container("c1", "s1", "app"), test::container_json(900));
  CHECK(b.build().pod->host_ports == std::vector<core::HostPort>{{.port = 8080}});
  CHECK(names(*b.build().pod) == std::vector<std::string>{"app"});
  (*b.sandbox.mutable_annotations())["evictd.io/pod-spec"] =
      R"({"containers":[{"name":"app","ports":[{"containerPort":80,"hostPort":8080}]}]})";
  CHECK(b.build().pod->host_ports.empty());
  CHECK(b.build().pod->containers.at(0).host_ports == std::vector<core::HostPort>{{.port = 8080}});
}

TEST_CASE("outside trusted namespaces an annotation neither takes ports of the node nor hides those that are mapped") {
  Builder b;
  b.trusted = pods::TrustedNamespaces{{"kube-system"}};
  b.sandbox_info = R"({"config":{"port_mappings":[{"container_port":80,"host_port":8080}]}})";
  b.add(test::container("c1", "s1", "app"), test::container_json(900));
  const std::vector<core::HostPort> mapped{{.port = 8080}};
  for (const auto* spec : {R"({"containers":[{"name":"app","ports":[{"containerPort":80,"hostPort":10250}]}],
            "initContainers":[{"name":"init","ports":[{"containerPort":80,"hostPort":443}]}]})",
                           R"({"hostNetwork":true,"containers":[{"name":"app","ports":[{"containerPort":10250}]}]})",
                           R"({"containers":[{"name":"app"}]})"}) {
    CAPTURE(spec);
    (*b.sandbox.mutable_annotations())["evictd.io/pod-spec"] = spec;
    const auto pod = b.build().pod;
    CHECK(pod->host_ports == mapped);
    for (const auto* containers : {&pod->init_containers, &pod->containers})
      for (const auto& container : *containers) CHECK(container.host_ports.empty());
  }
}

TEST_CASE("annotated volumes are the pod's own word, unless its namespace is trusted") {
  Builder b;
  (*b.sandbox.mutable_annotations())["evictd.io/pod-spec"] =
      R"({"containers":[{"name":"app"}],"volumes":[{"name":"x","emptyDir":{"sizeLimit":"1Mi"}}]})";
  CHECK_FALSE(b.build().pod->volumes_are_claimed);
  b.trusted = pods::TrustedNamespaces{{"kube-system"}};
  CHECK(b.build().pod->volumes_are_claimed);
  CHECK(b.build().pod->volumes == std::vector{fixture::empty_dir("x", "1Mi")});
  b.sandbox.clear_annotations();
  CHECK_FALSE(b.build().pod->volumes_are_claimed);
}

TEST_CASE("an exited init container asks for nothing, but stays among the runtime's containers") {
  Builder b;
  b.add(test::container("c1", "s1", "init", v1::CONTAINER_EXITED, 1), test::container_json(500, 0, 41))
      .add(test::container("c2", "s1", "app", v1::CONTAINER_RUNNING, 2), test::container_json(900, 0, 42))
      .add(test::container("c3", "s1", "sidecar", v1::CONTAINER_CREATED, 3), test::container_json(950));
  const auto runtime_pod = b.build();
  CHECK(names(*runtime_pod.pod) == std::vector<std::string>{"app", "sidecar"});
  REQUIRE(runtime_pod.containers.size() == 3);
  CHECK(runtime_pod.containers[0].state == ContainerState::Exited);
  CHECK(runtime_pod.containers[0].pid == 0);
  CHECK(runtime_pod.containers[1].pid == 42);
  CHECK(runtime_pod.containers[2].state == ContainerState::Created);
}

TEST_CASE("of a restarted container the latest attempt counts") {
  Builder b;
  b.add(test::container("c1", "s1", "app", v1::CONTAINER_UNKNOWN, 1), test::container_json(500))
      .add(test::container("c2", "s1", "app", v1::CONTAINER_RUNNING, 2), test::container_json(900));
  const auto pod = b.build().pod;
  REQUIRE(pod->containers.size() == 1);
  CHECK(pod->containers[0].resources.requests.at("memory").value() == 100 * MiB);
}

TEST_CASE("between two restarts a pod whose containers have all exited keeps its request") {
  Builder b;
  b.add(test::container("c1", "s1", "app", v1::CONTAINER_EXITED, 1), test::container_json(500))
      .add(test::container("c2", "s1", "app", v1::CONTAINER_EXITED, 2), test::container_json(900));
  const auto pod = b.build().pod;
  REQUIRE(pod->containers.size() == 1);
  CHECK(pod->containers[0].resources.requests.at("memory").value() == 100 * MiB);
}

TEST_CASE("what cannot be read is a warning with the pod's name, and the pod is there all the same") {
  Builder b;
  (*b.sandbox.mutable_annotations())["evictd.io/priority"] = "high";
  b.sandbox_info = "not JSON";
  auto app = test::container("c1", "s1", "app");
  (*app.mutable_annotations())["io.kubernetes.pod.terminationGracePeriod"] = "soon";
  b.add(app, "{");

  const auto runtime_pod = b.build();
  CHECK(runtime_pod.pod->key() == "shop/web");
  CHECK(runtime_pod.pod->status_qos == std::nullopt);
  CHECK(names(*runtime_pod.pod) == std::vector<std::string>{"app"});
  CHECK(runtime_pod.cgroup.empty());
  REQUIRE(b.warnings.size() == 4);
  CHECK(b.warnings[0].message ==
        "pod shop/web: annotation evictd.io/priority: \"high\" is not a whole number of 32 bits; ignored");
  CHECK(b.warnings[1].message.starts_with("pod shop/web: its cgroup is unknown: verbose status is not JSON: "));
  CHECK(b.warnings[2].message.starts_with("pod shop/web: container app: its limits and requests are unknown: "));
  CHECK(b.warnings[3].message ==
        "pod shop/web: annotation io.kubernetes.pod.terminationGracePeriod: \"soon\" is not a number of seconds; "
        "ignored");
}

TEST_CASE("a runtime that shows no configuration still tells the limits in the status itself") {
  v1::ContainerStatusResponse status;
  status.mutable_status()->set_state(v1::CONTAINER_RUNNING);
  status.mutable_status()->mutable_resources()->mutable_linux()->set_memory_limit_in_bytes(64 * MiB);
  const auto facts = pods::ContainerFacts::of(status);
  CHECK(facts.running);
  CHECK_FALSE(facts.complaint);
  CHECK(facts.info.resources == pods::LinuxResources{.memory_limit = 64 * MiB});
}

TEST_CASE("outside trusted namespaces a claim counts only as far as a status tells that is too large to be had whole") {
  Builder b;
  b.trusted = pods::TrustedNamespaces{{"kube-system"}};
  (*b.sandbox.mutable_annotations())["evictd.io/pod-spec"] =
      R"({"containers":[{"name":"app","resources":{"requests":{"memory":"1000Gi","cpu":"8"}}}]})";
  SUBCASE("of a class that the cgroup tells") {}
  SUBCASE("of a class that nothing tells") { b.sandbox_info = test::sandbox_json("/shared"); }
  v1::ContainerStatusResponse status;
  std::int64_t memory = 0;
  SUBCASE("which is nothing, by an old runtime") {}
  SUBCASE("which is what it was created with") {
    status.mutable_status()->mutable_resources()->mutable_linux()->set_oom_score_adj(900);
    memory = 100 * MiB;
  }
  auto facts = pods::ContainerFacts::of(status);
  facts.is_plain = true;
  const auto listed = test::container("c1", "s1", "app");
  b.containers = {{&listed, &facts}};
  const auto pod = b.build().pod;
  CHECK(core::pod_request(*pod, "memory").value() == memory);
  CHECK(core::pod_request(*pod, "cpu").is_zero());
  CHECK(core::qos_class(*pod) != QosClass::Guaranteed);
  CHECK(std::ranges::any_of(b.warnings, [](const Error& warning) {
    return warning.message ==
           "pod shop/web: container app: its verbose status is too large to be had; of its limits and requests is "
           "known "
           "what the plain one tells";
  }));
}

}  // namespace evictd::pods::assemble_test
