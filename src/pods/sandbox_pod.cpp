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
#include "pods/claimed_spec.hpp"
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

/// What the pod shares with the node, and what it sets of the kernel.
void read_sharing(core::Pod& pod, const v1::LinuxPodSandboxConfig& sandbox) {
  const auto& namespaces = sandbox.security_context().namespace_options();
  pod.host_network = namespaces.network() == v1::NODE;
  pod.host_ipc = namespaces.ipc() == v1::NODE;
  pod.host_users = !namespaces.has_userns_options() || namespaces.userns_options().mode() == v1::NODE;
  pod.sysctls.clear();
  for (const auto& [sysctl, value] : sandbox.sysctls()) pod.sysctls.push_back(sysctl);
  std::ranges::sort(pod.sysctls);
}

/// Who it is. Doubts about annotations are reported when the pod is listed later: here the pod is judged by what can be
/// read.
core::Pod sandbox_pod(const v1::PodSandboxConfig& sandbox) {
  core::Pod pod{.name_space = sandbox.metadata().namespace_(),
                .name = sandbox.metadata().name(),
                .uid = sandbox.metadata().uid(),
                .labels = {sandbox.labels().begin(), sandbox.labels().end()},
                .annotations = {sandbox.annotations().begin(), sandbox.annotations().end()}};
  std::vector<Error> doubts;
  infer_priority(pod, doubts);
  if (const auto cgroup = pod_cgroup(sandbox.linux().cgroup_parent(), pod.uid)) pod.status_qos = cgroup->qos;
  return pod;
}

/// What the sandbox says of all containers together counts as what the pod asks for.
void infer_requests(core::Pod& pod, const v1::LinuxPodSandboxConfig& sandbox, std::int64_t memory_capacity) {
  if (sandbox.has_overhead())
    pod.overhead = infer_container("", linux_resources(sandbox.overhead()), core::QosClass::Guaranteed, memory_capacity)
                       .resources.limits;
  if (!sandbox.has_resources()) return;
  auto inferred = infer_container("", linux_resources(sandbox.resources()), pod.status_qos, memory_capacity).resources;
  if (!inferred.empty()) pod.resources = std::move(inferred);
}

std::vector<core::HostPort> mapped_ports(const v1::PodSandboxConfig& sandbox) {
  std::vector<core::HostPort> ports;
  for (const auto& mapping : sandbox.port_mappings())
    add_host_port(ports, mapping.protocol(), mapping.host_port(), mapping.host_ip());
  return ports;
}

void drop_requests(core::Pod& pod) {
  pod.init_containers.clear();
  pod.containers.clear();
  pod.resources.reset();
  pod.overhead.clear();
}

void drop_confinement(core::Pod& pod) {
  pod.app_armor_profile.reset();
  for (auto* containers : {&pod.init_containers, &pod.containers})
    for (auto& container : *containers) container.app_armor_profile.reset();
}

/// `has_class`: by the container that is made.
core::Pod annotated_pod(const v1::PodSandboxConfig& sandbox, std::int64_t memory_capacity,
                        const TrustedNamespaces& trusted, bool has_class) {
  auto pod = sandbox_pod(sandbox);
  std::vector<Error> doubts;
  const bool is_annotated = apply_annotated_spec(pod, doubts);
  if (is_annotated && trusted.contains(pod.name_space)) return pod;
  const bool has_numbers = has_class || pod.status_qos || sandbox.linux().has_resources();
  drop_confinement(pod);
  read_sharing(pod, sandbox.linux());
  if (has_numbers) drop_requests(pod);
  if (!is_annotated || has_numbers) infer_requests(pod, sandbox.linux(), memory_capacity);
  take_mapped_ports(pod, mapped_ports(sandbox));
  return pod;
}

core::Container* find_container(core::Pod& pod, std::string_view name) {
  for (auto* containers : {&pod.init_containers, &pod.containers})
    if (const auto found = std::ranges::find(*containers, name, &core::Container::name); found != containers->end())
      return &*found;
  return nullptr;
}

}  // namespace

core::Pod pod_of_sandbox(const v1::PodSandboxConfig& sandbox, std::int64_t memory_capacity,
                         const TrustedNamespaces& trusted) {
  return annotated_pod(sandbox, memory_capacity, trusted, false);
}

core::Pod pod_of_sandbox(const v1::PodSandboxConfig& sandbox, const v1::ContainerConfig& container,
                         std::int64_t memory_capacity, const TrustedNamespaces& trusted) {
  const auto resources = linux_resources(container.linux().resources());
  const auto qos = qos_from_oom_score_adj(std::span(&resources, 1));
  auto pod = annotated_pod(sandbox, memory_capacity, trusted, qos.has_value());
  const auto& name = container.metadata().name();
  auto* known = find_container(pod, name);
  if (known != nullptr && trusted.contains(pod.name_space)) return pod;
  if (known == nullptr) {
    if (!pod.status_qos) pod.status_qos = qos;
    known = &pod.containers.emplace_back(infer_container(name, resources, pod.status_qos, memory_capacity));
  }
  known->app_armor_profile = app_armor_profile(container.linux().security_context());
  return pod;
}

}  // namespace evictd::pods
