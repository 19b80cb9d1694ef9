#include "pods/sandbox_pod.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include "core/pod_resources.hpp"
#include "core/qos.hpp"

namespace evictd::pods::sandbox_pod_test {
namespace {

namespace v1 = ::runtime::v1;

constexpr std::int64_t capacity = std::int64_t{4} << 30;

v1::PodSandboxConfig sandbox() {
  v1::PodSandboxConfig config;
  config.mutable_metadata()->set_name("web");
  config.mutable_metadata()->set_namespace_("shop");
  config.mutable_metadata()->set_uid("1234");
  return config;
}

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

  const auto pod = pod_of_sandbox(config, capacity);
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
  CHECK(pod_of_sandbox(config, capacity).host_users);
  auto& users =
      *config.mutable_linux()->mutable_security_context()->mutable_namespace_options()->mutable_userns_options();
  users.set_mode(v1::NODE);
  CHECK(pod_of_sandbox(config, capacity).host_users);
  users.set_mode(v1::POD);
  CHECK_FALSE(pod_of_sandbox(config, capacity).host_users);
}

TEST_CASE("ports without a port of the node take nothing of it") {
  auto config = sandbox();
  auto& taken = *config.add_port_mappings();
  taken.set_protocol(v1::UDP);
  taken.set_container_port(53);
  taken.set_host_port(5353);
  taken.set_host_ip("10.0.0.1");
  config.add_port_mappings()->set_container_port(80);

  const auto pod = pod_of_sandbox(config, capacity);
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

  const auto pod = pod_of_sandbox(config, capacity);
  CHECK(core::pod_request(pod, "memory").value() == (256 + 32) << 20);
  CHECK(core::pod_request(pod, "cpu").to_string() == "2");
}

TEST_CASE("a sandbox that carries its spec is judged by that") {
  auto config = sandbox();
  (*config.mutable_annotations())["evictd.io/pod-spec"] =
      R"({"containers": [{"name": "app", "resources": {"requests": {"memory": "100Mi"}}}]})";
  config.mutable_linux()->mutable_resources()->set_memory_limit_in_bytes(1 << 30);

  CHECK(core::pod_request(pod_of_sandbox(config, capacity), "memory").to_string() == "100Mi");
  const auto with_container = pod_of_sandbox(config, container("app"), capacity);
  CHECK(with_container.containers.size() == 1);
  CHECK(core::pod_request(with_container, "memory").to_string() == "100Mi");
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

  const auto pod = pod_of_sandbox(sandbox(), config, capacity);
  REQUIRE(pod.containers.size() == 1);
  CHECK(pod.containers[0].name == "app");
  CHECK(pod.containers[0].app_armor_profile ==
        core::AppArmorProfile{.type = "Localhost", .localhost_profile = "strict"});
  CHECK(core::qos_class(pod) == core::QosClass::Guaranteed);
  CHECK(core::pod_request(pod, "memory").to_string() == "64Mi");
}

}  // namespace evictd::pods::sandbox_pod_test
