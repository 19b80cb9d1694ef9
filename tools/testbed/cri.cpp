#include "testbed/cri.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/pod.hpp"
#include "testbed/channel.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace testbed {

namespace cri = runtime::v1;
using evictd::core::QosClass;

namespace {

/// The host's network, for want of CNI; processes are apart in each container, as the kubelet has it.
void set_namespaces(cri::NamespaceOption& options) {
  options.set_network(cri::NODE);
  options.set_pid(cri::CONTAINER);
}

/// The labels by which the kubelet, and all who look at its pods, find them again.
void add_pod_labels(google::protobuf::Map<std::string, std::string>& labels, const cri::PodSandboxMetadata& pod) {
  labels["io.kubernetes.pod.name"] = pod.name();
  labels["io.kubernetes.pod.namespace"] = pod.namespace_();
  labels["io.kubernetes.pod.uid"] = pod.uid();
}

cri::PodSandboxConfig sandbox_config_of(const PodSpec& spec, const RunningPod& pod) {
  cri::PodSandboxConfig config;
  config.mutable_metadata()->set_name(pod.name);
  config.mutable_metadata()->set_namespace_(pod.name_space);
  config.mutable_metadata()->set_uid(pod.uid);
  config.mutable_metadata()->set_attempt(spec.attempt);
  config.set_log_directory(spec.log_directory);
  config.mutable_labels()->insert(spec.labels.begin(), spec.labels.end());
  add_pod_labels(*config.mutable_labels(), config.metadata());
  config.mutable_annotations()->insert(spec.annotations.begin(), spec.annotations.end());
  if (spec.priority) (*config.mutable_annotations())["evictd.io/priority"] = std::to_string(*spec.priority);
  config.mutable_linux()->set_cgroup_parent(pod.cgroup);
  set_namespaces(*config.mutable_linux()->mutable_security_context()->mutable_namespace_options());
  return config;
}

/// runc's own process becomes the container's program a moment after its start was reported. Until then it takes a
/// SIGTERM in its own way: as process 1 of a pod it exits with 2.
bool is_still_runc(pid_t pid) {
  return try_read_file(fmt::format("/proc/{}/comm", pid)).value_or("").starts_with("runc:");
}

/// What the kubelet gives a container of the class. BestEffort 1000, Guaranteed -997, Burstable min(max(2, 1000 -
/// 1000·request/capacity), 999).
int oom_score_adj(QosClass qos, std::int64_t memory_request, std::int64_t memory_capacity) {
  if (qos == QosClass::Guaranteed) return -997;
  if (qos == QosClass::BestEffort) return 1000;
  return static_cast<int>(std::clamp<std::int64_t>(1000 - 1000 * memory_request / memory_capacity, 2, 999));
}

}  // namespace

std::string random_uid() {
  auto uid = read_file("/proc/sys/kernel/random/uuid");
  uid.pop_back();  // the line's end
  return uid;
}

Cri::Cri(const std::filesystem::path& socket, const PodCgroups& node)
    : node_(node), calls_(channel_to("unix:" + socket.native())) {}

RunningPod Cri::run_pod(const PodSpec& spec) {
  RunningPod pod{.name = spec.name, .name_space = spec.name_space, .uid = spec.uid.empty() ? random_uid() : spec.uid};
  pod.cgroup = node_.pod_cgroup(spec.qos, pod.uid);

  cri::RunPodSandboxRequest request;
  *request.mutable_config() = sandbox_config_of(spec, pod);
  pod.sandbox = calls_.ask<cri::RunPodSandboxResponse>(request).pod_sandbox_id();
  for (const auto& container : spec.containers) {
    pod.containers[container.name] = run_container(spec, container, pod.sandbox, request.config());
  }
  wait_until("the containers of " + spec.name + " run their own programs", std::chrono::seconds{60},
             [&] { return std::ranges::none_of(node_.processes(pod.cgroup), is_still_runc); });
  return pod;
}

std::string Cri::run_container(const PodSpec& pod, const ContainerSpec& container, const std::string& sandbox,
                               const cri::PodSandboxConfig& sandbox_config) {
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(sandbox);
  *request.mutable_sandbox_config() = sandbox_config;

  auto& config = *request.mutable_config();
  config.mutable_metadata()->set_name(container.name);
  config.mutable_metadata()->set_attempt(pod.attempt);
  config.mutable_image()->set_image(container.image);
  config.mutable_command()->Assign(container.command.begin(), container.command.end());
  config.mutable_args()->Assign(container.args.begin(), container.args.end());
  for (const auto& mount : container.mounts) {
    auto& added = *config.add_mounts();
    added.set_host_path(mount.host_path);
    added.set_container_path(mount.container_path);
    added.set_readonly(mount.readonly);
    if (!mount.image.empty()) added.mutable_image()->set_image(mount.image);
  }
  add_pod_labels(*config.mutable_labels(), sandbox_config.metadata());
  (*config.mutable_labels())["io.kubernetes.container.name"] = container.name;
  config.mutable_annotations()->insert(container.annotations.begin(), container.annotations.end());
  if (pod.termination_grace_period) {
    (*config.mutable_annotations())["io.kubernetes.pod.terminationGracePeriod"] =
        std::to_string(pod.termination_grace_period->count());
  }
  if (!pod.log_directory.empty()) {
    std::filesystem::create_directories(pod.log_directory / container.name);  // that is the kubelet's to do
    config.set_log_path(fmt::format("{}/{}.log", container.name, pod.attempt));
  }

  auto& resources = *config.mutable_linux()->mutable_resources();
  resources.set_oom_score_adj(oom_score_adj(pod.qos, container.memory_request, node_.memory_capacity()));
  resources.set_memory_limit_in_bytes(container.memory_limit.value_or(0));
  set_namespaces(*config.mutable_linux()->mutable_security_context()->mutable_namespace_options());

  cri::StartContainerRequest start;
  start.set_container_id(calls_.ask<cri::CreateContainerResponse>(request).container_id());
  calls_.ask<cri::StartContainerResponse>(start);
  return start.container_id();
}

cri::ContainerStatus Cri::container_status(const std::string& container) const {
  cri::ContainerStatusRequest request;
  request.set_container_id(container);
  return calls_.ask<cri::ContainerStatusResponse>(request).status();
}

bool Cri::is_running(const std::string& container) const {
  return container_status(container).state() == cri::CONTAINER_RUNNING;
}

bool Cri::is_running(const RunningPod& pod) const {
  return std::ranges::all_of(pod.containers, [&](const auto& container) { return is_running(container.second); });
}

std::vector<std::string> Cri::ready_pods() const {
  std::vector<std::string> result;
  for (const auto& sandbox : sandboxes()) {
    if (sandbox.state() != cri::SANDBOX_READY) continue;
    result.push_back(sandbox.metadata().namespace_() + "/" + sandbox.metadata().name());
  }
  std::ranges::sort(result);
  return result;
}

google::protobuf::RepeatedPtrField<cri::PodSandbox> Cri::sandboxes() const {
  return calls_.ask<cri::ListPodSandboxResponse>(cri::ListPodSandboxRequest{}).items();
}

google::protobuf::RepeatedPtrField<cri::Container> Cri::containers() const {
  return calls_.ask<cri::ListContainersResponse>(cri::ListContainersRequest{}).containers();
}

google::protobuf::RepeatedPtrField<cri::Image> Cri::images() const {
  return calls_.ask<cri::ListImagesResponse>(cri::ListImagesRequest{}).images();
}

void Cri::stop(const RunningPod& pod, std::chrono::seconds grace_period) {
  for (const auto& [name, id] : pod.containers) {
    cri::StopContainerRequest request;
    request.set_container_id(id);
    request.set_timeout(grace_period.count());
    calls_.ask<cri::StopContainerResponse>(request);
  }
  cri::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(pod.sandbox);
  calls_.ask<cri::StopPodSandboxResponse>(request);
  const auto is_up = [&](const auto& sandbox) {
    return sandbox.id() == pod.sandbox && sandbox.state() == cri::SANDBOX_READY;
  };
  wait_until("the sandbox of " + pod.name + " is shown as stopped", std::chrono::seconds{60},
             [&] { return std::ranges::none_of(sandboxes(), is_up); });
}

void Cri::remove(const RunningPod& pod) {
  stop(pod, std::chrono::seconds{0});
  cri::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(pod.sandbox);
  calls_.ask<cri::RemovePodSandboxResponse>(request);
}

}  // namespace testbed
