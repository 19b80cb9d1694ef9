#include "app/kernel_killer.hpp"

#include <array>
#include <string>
#include <system_error>
#include <utility>

#include "app/agent_parts.hpp"
#include "async/side_thread.hpp"
#include "os/directory.hpp"
#include "os/kept_file.hpp"
#include "os/log.hpp"
#include "os/numbers.hpp"
#include "pods/trust.hpp"
#include "wake/kernel_log.hpp"

namespace evictd::app {
namespace {

constexpr auto kernel_log = "/dev/kmsg";

/// Bytes of swap, of which the kernel takes shares as of memory.
std::int64_t swap_total(const std::string& proc) {
  const auto directory = os::Directory::open(proc);
  const auto file = directory ? directory->file("meminfo") : std::unexpected(directory.error());
  std::array<char, os::table_size> buffer;
  const auto table = file ? file->read(buffer) : std::unexpected(file.error());
  return table ? os::find_number(*table, "SwapTotal:").value_or(0) * 1024 : 0;
}

}  // namespace

evict::OomScores::Places oom_score_places(const config::AgentConfiguration& settings, std::int64_t capacity) {
  const auto& proc = settings.node.proc_mount;
  return {.cgroup_mount = settings.node.cgroup_mount,
          .proc = proc,
          .note = config::runtime_files(settings).oom_scores,
          .is_protected = protection(settings),
          .memory = capacity + swap_total(proc)};
}

KernelKiller::KernelKiller(const SourceMaker& sources, const Parts& parts) {
  const auto& settings = sources.configuration.agent;
  if (!parts.dry_run) {
    groups_ = std::make_unique<agent::OomGroups>(parts.node.hierarchy, parts.pods,
                                                 pods::TrustedNamespaces{settings.pod_sources.trusted_namespaces});
    parts.pods.tell_later(*groups_);
    if (settings.protection.steer_oom == config::SteerOom::Auto) steer(sources, parts);
  }
  if (settings.notifier.has(config::NotifierSource::KernelOom)) tell_of_kills(sources, parts);
}

void KernelKiller::tell_of_kills(const SourceMaker& sources, const Parts& parts) {
  auto opened = wake::open_kernel_log(kernel_log);
  kills_ = std::make_unique<agent::KernelOom>(sources.reactor,
                                              agent::KernelOom::Parts{.policy = parts.policy,
                                                                      .usage = parts.usage,
                                                                      .pods = parts.pods,
                                                                      .records = parts.records,
                                                                      .hierarchy = parts.node.hierarchy,
                                                                      .pods_cgroup = parts.node.memory.pods_cgroup(),
                                                                      .clock = parts.clock,
                                                                      .log = parts.recorder,
                                                                      .order = steering_,
                                                                      .has_log = opened.has_value()});
  add<wake::KernelLog>(sources.sources, sources.reactor, sources.wakes, std::move(opened), *kills_);
  parts.pods.tell_later(*kills_);
}

void KernelKiller::steer(const SourceMaker& sources, const Parts& parts) {
  agent::OomSteering::Parts steering{
      .policy = parts.policy,
      .usage = parts.usage,
      .pods = parts.pods,
      .clock = parts.clock,
      .worker = nullptr,
      .scores = std::make_shared<evict::OomScores>(oom_score_places(sources.configuration.agent, parts.capacity)),
      .capacity = parts.capacity,
      .acts = [&evictions = parts.evictions] { return evictions.acts(); },
      .prepares = !parts.others_prepare};
  try {
    steering.worker = std::make_unique<async::SideThread>(sources.reactor, "oom scores");
  } catch (const std::system_error& error) {
    os::log_warning("protection.steerOom: no thread can be had: {}", error.what());
    return;
  }
  steering_ = &add<agent::OomSteering>(sources.sources, sources.reactor, std::move(steering));
}

}  // namespace evictd::app
