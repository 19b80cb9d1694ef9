#include "pods/sandbox_pod.hpp"

#include <api.pb.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "pods/annotated_spec.hpp"
#include "pods/cgroup_name.hpp"
#include "pods/host_port.hpp"
#include "pods/infer.hpp"
#include "pods/linux_resources.hpp"

namespace evictd::pods {
namespace {

namespace v1 = ::runtime::v1;

std::optional<core::AppArmorProfile> app_armor_profile(const v1::LinuxContainerSecurityContext& context) {
  using Profile = v1::SecurityProfile;
  if (context.has_apparmor()) switch (context.apparmor().profile_type()) {
      case Profile::RuntimeDefault: return core::AppArmorProfile{.type = "RuntimeDefault"};
      case Profile::Unconfined: return core::AppArmorProfile{.type = "Unconfined"};
      case Profile::Localhost:
        return core::AppArmorProfile{.type = "Localhost", .localhost_profile = context.apparmor().localhost_ref()};
      default: break;
    }
  const std::string_view written = context.apparmor_profile();
  constexpr std::string_view localhost = "localhost/";
  if (written.empty()) return std::nullopt;
  if (written == "runtime/default") return core::AppArmorProfile{.type = "RuntimeDefault"};
  if (written == "unconfined") return core::AppArmorProfile{.type = "Unconfined"};
  if (written.starts_with(localhost))
    return core::AppArmorProfile{.type = "Localhost",
                                 .localhost_profile = std::string(written.substr(localhost.size()))};
  return core::AppArmorProfile{.type = std::string(written)};
}

/// With everything but the containers. Doubts about annotations are reported when the pod is listed later: here the pod
/// is judged by what can be read.
core::Pod sandbox_pod(const v1::PodSandboxConfig& sandbox) {
  core::Pod pod{.name_space = sandbox.metadata().namespace_(),
                .name = sandbox.metadata().name(),
                .uid = sandbox.metadata().uid(),
                .labels = {sandbox.labels().begin(), sandbox.labels().end()},
                .annotations = {sandbox.annotations().begin(), sandbox.annotations().end()}};
  std::vector<Error> doubts;
  infer_priority(pod, doubts);
  if (const auto cgroup = pod_cgroup(sandbox.linux().cgroup_parent(), pod.uid)) pod.status_qos = cgroup->qos;
  const auto& namespaces = sandbox.linux().security_context().namespace_options();
  pod.host_network = namespaces.network() == v1::NODE;
  pod.host_ipc = namespaces.ipc() == v1::NODE;
  pod.host_users = !namespaces.has_userns_options() || namespaces.userns_options().mode() == v1::NODE;
  for (const auto& [sysctl, value] : sandbox.linux().sysctls()) pod.sysctls.push_back(sysctl);
  std::ranges::sort(pod.sysctls);
  return pod;
}

bool is_annotated(const core::Pod& pod) { return pod.annotations.contains(pod_spec_annotation); }

/// What the sandbox says of all containers together counts as what the pod asks for.
void infer_requests(core::Pod& pod, const v1::LinuxPodSandboxConfig& sandbox, std::int64_t memory_capacity) {
  if (sandbox.has_overhead())
    pod.overhead = infer_container("", linux_resources(sandbox.overhead()), core::QosClass::Guaranteed, memory_capacity)
                       .resources.limits;
  if (!sandbox.has_resources()) return;
  auto inferred = infer_container("", linux_resources(sandbox.resources()), pod.status_qos, memory_capacity).resources;
  if (!inferred.empty()) pod.resources = std::move(inferred);
}

}  // namespace

core::Pod pod_of_sandbox(const v1::PodSandboxConfig& sandbox, std::int64_t memory_capacity) {
  auto pod = sandbox_pod(sandbox);
  std::vector<Error> doubts;
  if (is_annotated(pod) && apply_annotated_spec(pod, doubts)) return pod;
  infer_requests(pod, sandbox.linux(), memory_capacity);
  for (const auto& mapping : sandbox.port_mappings())
    add_host_port(pod.host_ports, mapping.protocol(), mapping.host_port(), mapping.host_ip());
  return pod;
}

core::Pod pod_of_sandbox(const v1::PodSandboxConfig& sandbox, const v1::ContainerConfig& container,
                         std::int64_t memory_capacity) {
  auto pod = pod_of_sandbox(sandbox, memory_capacity);
  const auto& name = container.metadata().name();
  const bool known = std::ranges::find(pod.containers, name, &core::Container::name) != pod.containers.end() ||
                     std::ranges::find(pod.init_containers, name, &core::Container::name) != pod.init_containers.end();
  if (known) return pod;
  const auto resources = linux_resources(container.linux().resources());
  if (!pod.status_qos) pod.status_qos = qos_from_oom_score_adj(std::span(&resources, 1));
  auto inferred = infer_container(name, resources, pod.status_qos, memory_capacity);
  inferred.app_armor_profile = app_armor_profile(container.linux().security_context());
  pod.containers.push_back(std::move(inferred));
  return pod;
}

}  // namespace evictd::pods
