#include "pods/sandbox_pod.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "core/pod_resources.hpp"
#include "core/qos.hpp"

namespace evictd::pods::sandbox_pod_test {
namespace {

namespace v1 = ::runtime::v1;

constexpr std::int64_t capacity = std::int64_t{4} << 30;
const TrustedNamespaces by_default{{"kube-system"}};

v1::PodSandboxConfig sandbox() {
  v1::PodSandboxConfig config;
  config.mutable_metadata()->set_name("web");
  config.mutable_metadata()->set_namespace_("shop");
  config.mutable_metadata()->set_uid("1234");
  return config;
}

/// With the class, and with this spec.
v1::PodSandboxConfig claiming(const std::string& qos_cgroup, const std::string& spec) {
  auto config = sandbox();
  config.mutable_linux()->set_cgroup_parent("/kubepods" + qos_cgroup + "/pod1234");
  (*config.mutable_annotations())["evictd.io/pod-spec"] = spec;
  return config;
}

const std::string requests_1000_gib =
    R"({"containers": [{"name": "app", "resources":
                         {"requests": {"memory": "1000Gi", "cpu": "64", "example.com/gpu": "8"}}},
                       {"name": "other", "resources": {"requests": {"memory": "1000Gi"}}}],
        "initContainers": [{"name": "side", "restartPolicy": "Always", "resources": {"requests": {"memory": "1Gi"}}}],
        "resources": {"requests": {"memory": "2000Gi"}}, "overhead": {"memory": "1000Gi"}})";

v1::ContainerConfig container(const std::string& name) {
  v1::ContainerConfig config;
  config.mutable_metadata()->set_name(name);
  return config;
}

}  // namespace

TEST_CASE("a sandbox says who the pod is, how important, and what of the node it wants") {
  auto config = sandbox();
  (*config.mutable_labels())["app"] = "web";
  (*config.mutable_annotations())["evictd.io/priority-class"] = "system-node-critical";
  config.mutable_linux()->set_cgroup_parent("/kubepods/burstable/pod1234");
  (*config.mutable_linux()->mutable_sysctls())["net.core.somaxconn"] = "1024";
  (*config.mutable_linux()->mutable_sysctls())["kernel.shm_rmid_forced"] = "1";
  auto& namespaces = *config.mutable_linux()->mutable_security_context()->mutable_namespace_options();
  namespaces.set_network(v1::NODE);
  namespaces.set_ipc(v1::POD);

  const auto pod = pod_of_sandbox(config, capacity, by_default);
  CHECK(pod.key() == "shop/web");
  CHECK(pod.uid == "1234");
  CHECK(pod.labels.at("app") == "web");
  CHECK(core::is_critical(pod));
  CHECK(core::qos_class(pod) == core::QosClass::Burstable);
  CHECK(pod.sysctls == std::vector<std::string>{"kernel.shm_rmid_forced", "net.core.somaxconn"});
  CHECK(pod.host_network);
  CHECK_FALSE(pod.host_ipc);
}

TEST_CASE("a sandbox has a user namespace of its own only where it says so") {
  auto config = sandbox();
  CHECK(pod_of_sandbox(config, capacity, by_default).host_users);
  auto& users =
      *config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->mutable_userns_options();
  users.set_mode(v1::NODE);
  CHECK(pod_of_sandbox(config, capacity, by_default).host_users);
  users.set_mode(v1::POD);
  CHECK_FALSE(pod_of_sandbox(config, capacity, by_default).host_users);
}

TEST_CASE("ports without a port of the node take nothing of it") {
  auto config = sandbox();
  auto& taken = *config.add_port_mappings();
  taken.set_protocol(v1::UDP);
  taken.set_container_port(53);
  taken.set_host_port(5353);
  taken.set_host_ip("10.0.0.1");
  config.add_port_mappings()->set_container_port(80);

  const auto pod = pod_of_sandbox(config, capacity, by_default);
  CHECK(pod.containers.empty());
  CHECK(pod.host_ports == std::vector<core::HostPort>{{.ip = "10.0.0.1", .protocol = "UDP", .port = 5353}});
}

TEST_CASE("what the sandbox says of its containers' needs is what the pod requests") {
  auto config = sandbox();
  config.mutable_linux()->set_cgroup_parent("/kubepods/pod1234");
  auto& resources = *config.mutable_linux()->mutable_resources();
  resources.set_memory_limit_in_bytes(256 << 20);
  resources.set_cpu_period(100'000);
  resources.set_cpu_quota(200'000);
  config.mutable_linux()->mutable_overhead()->set_memory_limit_in_bytes(32 << 20);

  const auto pod = pod_of_sandbox(config, capacity, by_default);
  CHECK(core::pod_request(pod, "memory").value() == (256 + 32) << 20);
  CHECK(core::pod_request(pod, "cpu").to_string() == "2");
}

TEST_CASE("a sandbox that carries its spec is judged by that, in a trusted namespace") {
  auto config = sandbox();
  config.mutable_metadata()->set_namespace_("kube-system");
  (*config.mutable_annotations())["evictd.io/pod-spec"] =
      R"({"containers": [{"name": "app", "resources": {"requests": {"memory": "100Mi"}}}]})";
  config.mutable_linux()->mutable_resources()->set_memory_limit_in_bytes(1 << 30);

  CHECK(core::pod_request(pod_of_sandbox(config, capacity, by_default), "memory").to_string() == "100Mi");
  const auto with_container = pod_of_sandbox(config, container("app"), capacity, by_default);
  CHECK(with_container.containers.size() == 1);
  CHECK(core::pod_request(with_container, "memory").to_string() == "100Mi");
}

TEST_CASE("elsewhere an annotated pod requests what its sandbox says, and its containers what they are made with") {
  const auto requests = [](const core::Pod& pod) {
    std::map<std::string, std::string> told;
    for (const auto& [resource, quantity] : core::pod_requests(pod))
      if (!quantity.is_zero()) told[resource] = quantity.to_string();
    return told;
  };
  using Told = std::map<std::string, std::string>;
  auto app = container("app");
  auto& given = *app.mutable_linux()->mutable_resources();

  SUBCASE("which is nothing for a BestEffort one") {
    const auto config = claiming("/besteffort", requests_1000_gib);
    CHECK(requests(pod_of_sandbox(config, capacity, by_default)).empty());
    given.set_oom_score_adj(1000);
    CHECK(requests(pod_of_sandbox(config, app, capacity, by_default)).empty());
  }
  SUBCASE("which is the containers' numbers for a Burstable one") {
    const auto config = claiming("/burstable", requests_1000_gib);
    CHECK(requests(pod_of_sandbox(config, capacity, by_default)).empty());
    given.set_oom_score_adj(750);
    given.set_cpu_shares(512);
    const auto pod = pod_of_sandbox(config, app, capacity, by_default);
    CHECK(requests(pod) == Told{{"memory", "1Gi"}, {"cpu", "500m"}});
    CHECK(pod.containers.size() == 1);
    CHECK(pod.init_containers.empty());
  }
  SUBCASE("which is the sandbox's limits for a Guaranteed one") {
    auto config = claiming("", requests_1000_gib);
    config.mutable_linux()->mutable_resources()->set_memory_limit_in_bytes(256 << 20);
    config.mutable_linux()->mutable_overhead()->set_memory_limit_in_bytes(32 << 20);
    CHECK(requests(pod_of_sandbox(config, capacity, by_default)) == Told{{"memory", "288Mi"}});
  }
  SUBCASE("which is the sandbox's shares where no cgroup tells the class") {
    auto config = claiming("", requests_1000_gib);
    config.mutable_linux()->clear_cgroup_parent();
    config.mutable_linux()->mutable_resources()->set_cpu_shares(512);
    CHECK(requests(pod_of_sandbox(config, capacity, by_default)) == Told{{"cpu", "500m"}});
  }
}

TEST_CASE("an annotated spec is believed where neither its sandbox nor its container has anything to compare with") {
  auto config = claiming("", R"({"containers": [{"name": "app", "resources": {"requests": {"memory": "100Mi"}}},
                                                {"name": "other", "resources": {"requests": {"memory": "50Mi"}}}]})");
  config.mutable_linux()->clear_cgroup_parent();
  CHECK(core::pod_request(pod_of_sandbox(config, capacity, by_default), "memory").to_string() == "150Mi");
  auto app = container("app");
  CHECK(core::pod_request(pod_of_sandbox(config, app, capacity, by_default), "memory").to_string() == "150Mi");
  app.mutable_linux()->mutable_resources()->set_oom_score_adj(1000);
  CHECK(core::pod_request(pod_of_sandbox(config, app, capacity, by_default), "memory").is_zero());
}

TEST_CASE("outside trusted namespaces ports, network, sysctls and confinement are what is asked of the runtime") {
  auto config = claiming("/burstable", R"({"hostNetwork": true, "hostIPC": true, "hostUsers": true,
    "securityContext": {"sysctls": [{"name": "net.core.somaxconn"}], "appArmorProfile": {"type": "Unconfined"}},
    "nodeSelector": {"disk": "ssd"},
    "containers": [{"name": "app", "ports": [{"containerPort": 10250}],
                    "securityContext": {"appArmorProfile": {"type": "Unconfined"}}}]})");
  bool believed = false;
  SUBCASE("with a class that is known") {}
  SUBCASE("with one that is not") { config.mutable_linux()->clear_cgroup_parent(); }
  SUBCASE("in a trusted one they are what is annotated") {
    config.mutable_metadata()->set_namespace_("kube-system");
    believed = true;
  }
  (*config.mutable_linux()->mutable_sysctls())["kernel.msgmax"] = "1";
  auto& namespaces = *config.mutable_linux()->mutable_security_context()->mutable_namespace_options();
  namespaces.set_network(v1::POD);
  namespaces.set_ipc(v1::POD);
  namespaces.mutable_userns_options()->set_mode(v1::POD);
  config.add_port_mappings()->set_host_port(8080);
  auto app = container("app");
  app.mutable_linux()->mutable_security_context()->set_apparmor_profile("localhost/strict");

  for (const auto& pod :
       {pod_of_sandbox(config, capacity, by_default), pod_of_sandbox(config, app, capacity, by_default)}) {
    CHECK(pod.host_network == believed);
    CHECK(pod.host_ipc == believed);
    CHECK(pod.host_users == believed);
    CHECK(pod.sysctls == std::vector<std::string>{believed ? "net.core.somaxconn" : "kernel.msgmax"});
    CHECK(pod.app_armor_profile.has_value() == believed);
    CHECK(pod.node_selector.at("disk") == "ssd");
    CHECK(pod.host_ports.empty() == believed);
    for (const auto& each : pod.containers) CHECK(each.host_ports.empty() != believed);
  }
  const auto made = pod_of_sandbox(config, app, capacity, by_default);
  REQUIRE(made.containers.size() == 1);
  CHECK(made.containers[0].app_armor_profile->type == (believed ? "Unconfined" : "Localhost"));
}

TEST_CASE("a container adds what it asks for and how it is confined") {
  auto config = container("app");
  auto& resources = *config.mutable_linux()->mutable_resources();
  resources.set_memory_limit_in_bytes(64 << 20);
  resources.set_oom_score_adj(-997);
  auto& context = *config.mutable_linux()->mutable_security_context();

  SUBCASE("by the newer field") {
    context.mutable_apparmor()->set_profile_type(v1::SecurityProfile::Localhost);
    context.mutable_apparmor()->set_localhost_ref("strict");
    context.set_apparmor_profile("unconfined");
  }
  SUBCASE("by the older one") { context.set_apparmor_profile("localhost/strict"); }

  const auto pod = pod_of_sandbox(sandbox(), config, capacity, by_default);
  REQUIRE(pod.containers.size() == 1);
  CHECK(pod.containers[0].name == "app");
  CHECK(pod.containers[0].app_armor_profile ==
        core::AppArmorProfile{.type = "Localhost", .localhost_profile = "strict"});
  CHECK(core::qos_class(pod) == core::QosClass::Guaranteed);
  CHECK(core::pod_request(pod, "memory").to_string() == "64Mi");
}

}  // namespace evictd::pods::sandbox_pod_test
