#include "pods/assemble.hpp"

#include <api.pb.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "pods/annotated_spec.hpp"
#include "pods/cgroup_name.hpp"
#include "pods/claimed_spec.hpp"
#include "pods/current_containers.hpp"
#include "pods/infer.hpp"
#include "pods/linux_resources.hpp"

namespace evictd::pods {
namespace {

namespace v1 = ::runtime::v1;

template <class Map>
auto to_texts(const Map& map) {
  return std::map<std::string, std::string, std::less<>>(map.begin(), map.end());
}

const std::string& name_of(const KnownContainer& container) { return container.listed->metadata().name(); }

std::vector<KnownContainer> current(const std::vector<KnownContainer>& containers) {
  const auto exited = [](const KnownContainer& c) { return c.listed->state() == v1::CONTAINER_EXITED; };
  std::vector<KnownContainer> current;
  for (const auto* container : current_containers(containers, exited, name_of)) current.push_back(*container);
  return current;
}

std::vector<LinuxResources> resources_of(const std::vector<KnownContainer>& containers) {
  std::vector<LinuxResources> resources;
  for (const auto& container : containers)
    resources.push_back(container.facts->info.resources.value_or(LinuxResources{}));
  return resources;
}

/// After status_qos is known.
void infer_containers(core::Pod& pod, const std::vector<KnownContainer>& containers, std::int64_t memory_capacity) {
  for (const auto& known : current(containers)) {
    const auto& facts = *known.facts;
    const auto created = facts.info.resources.value_or(LinuxResources{});
    auto container = infer_container(name_of(known), created, pod.status_qos, memory_capacity);
    apply_update(container, facts.given, pod.status_qos);
    pod.containers.push_back(std::move(container));
  }
}

/// Of each name the latest, first those that count.
std::vector<CreatedContainer> created_of(const std::vector<KnownContainer>& containers) {
  const auto relevant = current(containers);
  std::vector<CreatedContainer> created;
  for (const auto& [listed, its] : relevant)
    created.push_back(
        {.name = listed->metadata().name(), .resources = its->info.resources, .is_silent = its->is_plain});
  for (auto known = containers.rbegin(); known != containers.rend(); ++known) {
    const auto& name = known->listed->metadata().name();
    if (std::ranges::find(created, name, &CreatedContainer::name) == created.end())
      created.push_back({.name = name,
                         .resources = known->facts->info.resources,
                         .exited = true,
                         .is_silent = known->facts->is_plain});
  }
  return created;
}

/// Only what carries the container's id is its own: who kills by it must not hit others.
std::string own_cgroup(std::string cgroup, const std::string& id) {
  const auto name = std::string_view(cgroup).substr(cgroup.rfind('/') + 1);
  return id.empty() || !name.contains(id) ? std::string{} : cgroup;
}

}  // namespace

ContainerState state_of(const v1::Container& container) {
  switch (container.state()) {
    case v1::CONTAINER_CREATED: return ContainerState::Created;
    case v1::CONTAINER_RUNNING: return ContainerState::Running;
    case v1::CONTAINER_EXITED: return ContainerState::Exited;
    default: return ContainerState::Unknown;
  }
}

SandboxFacts SandboxFacts::of(const v1::PodSandboxStatusResponse& status) {
  SandboxFacts facts;
  const auto json = status.info().find("info");
  if (json == status.info().end()) return facts;
  if (auto info = parse_sandbox_info(json->second))
    facts.info = std::move(*info);
  else
    facts.complaint = info.error();
  return facts;
}

ContainerFacts ContainerFacts::of(const v1::ContainerStatusResponse& status) {
  ContainerFacts facts{.running = status.status().state() == v1::CONTAINER_RUNNING};
  if (const auto json = status.info().find("info"); json != status.info().end()) {
    if (auto info = parse_container_info(json->second))
      facts.info = std::move(*info);
    else
      facts.complaint = info.error();
  }
  if (status.status().resources().has_linux()) {
    facts.given = linux_resources(status.status().resources().linux());
    if (!facts.info.resources) facts.info.resources = facts.given;
  }
  return facts;
}

RuntimePod assemble(const v1::PodSandbox& sandbox, const SandboxFacts& facts,
                    const std::vector<KnownContainer>& containers, std::int64_t memory_capacity,
                    const TrustedNamespaces& trusted, std::vector<Error>& warnings) {
  core::Pod pod{.name_space = sandbox.metadata().namespace_(),
                .name = sandbox.metadata().name(),
                .uid = sandbox.metadata().uid(),
                .labels = to_texts(sandbox.labels()),
                .annotations = to_texts(sandbox.annotations())};
  std::vector<Error> doubts;
  RuntimePod runtime_pod{.sandbox_id = sandbox.id(), .cgroup_parent = facts.info.cgroup_parent};

  infer_priority(pod, doubts);
  if (facts.complaint) doubts.push_back(facts.complaint->in("its cgroup is unknown"));
  if (auto cgroup = pod_cgroup(facts.info.cgroup_parent, pod.uid)) {
    pod.status_qos = cgroup->qos;
    runtime_pod.cgroup = std::move(cgroup->path);
  }
  for (const auto& [listed, its] : containers) {
    const auto& name = listed->metadata().name();
    if (its->complaint)
      doubts.push_back(its->complaint->in("container " + name + ": its limits and requests are unknown"));
    if (its->is_plain)
      doubts.push_back({"container " + name +
                        ": its verbose status is too large to be had; of its limits and requests is known what the "
                        "plain one tells"});
    if (const auto grace = infer_termination_grace(to_texts(listed->annotations()), doubts))
      pod.termination_grace_period_seconds = grace;
    runtime_pod.containers.push_back({.id = listed->id(),
                                      .name = name,
                                      .state = state_of(*listed),
                                      .pid = listed->state() == v1::CONTAINER_RUNNING ? its->info.pid : 0,
                                      .cgroup = own_cgroup(container_cgroup(its->info.cgroups_path), listed->id())});
  }
  const auto told_grace = pod.termination_grace_period_seconds;
  const bool specified =
      facts.spec ? apply_annotated_spec(*facts.spec, pod, doubts) : apply_annotated_spec(pod, doubts);
  const bool is_doubted = specified && !trusted.contains(pod.name_space);
  // A trusted spec says itself what class it is of.
  if (!pod.status_qos && (is_doubted || !specified))
    pod.status_qos = qos_from_oom_score_adj(resources_of(current(containers)));
  if (!specified) {
    infer_containers(pod, containers, memory_capacity);
    pod.host_ports = facts.info.host_ports;
  }
  if (is_doubted) {
    hold_to_numbers(pod, created_of(containers), memory_capacity, doubts);
    pod.termination_grace_period_seconds = believed_grace(pod.termination_grace_period_seconds, told_grace);
    pod.volumes_are_claimed = true;
    take_mapped_ports(pod, facts.info.host_ports);
  }

  for (const auto& doubt : doubts) warnings.push_back(doubt.in("pod " + pod.key()));
  runtime_pod.pod = std::make_shared<const core::Pod>(std::move(pod));
  return runtime_pod;
}

}  // namespace evictd::pods
