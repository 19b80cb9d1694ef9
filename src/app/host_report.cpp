#include "app/host_report.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>

#include "app/runtime_offers.hpp"
#include "core/signal.hpp"
#include "host/offers.hpp"
#include "node/cgroup.hpp"
#include "node/node_memory.hpp"
#include "node/own_place.hpp"
#include "wake/kernel_log.hpp"

namespace json = boost::json;

namespace evictd::app {
namespace {

json::object describe(const host::Offer& offer) {
  return {{"name", offer.name},
          {"available", offer.available},
          {"detail", offer.detail},
          {"consequence", offer.consequence}};
}

/// As `evictd run` would find it with the rights of this process.
host::Offer self_test(const node::CgroupHierarchy& hierarchy, const config::AgentConfiguration& agent) {
  const auto place = node::find_own_place(hierarchy, agent.node.cgroup_root);
  if (!place)
    return {.name = "self-test",
            .available = false,
            .detail = place.error().message,
            .consequence = "nothing notices that the kernel has stopped telling what evictd waits for"};
  return {
      .name = "self-test",
      .available = true,
      .detail = fmt::format("in {}, {}", place->cgroup, place->delegated ? "delegated to evictd" : "the node's cgroup"),
      .consequence = ""};
}

host::Offer kernel_log_offer() {
  const auto opened = wake::open_kernel_log("/dev/kmsg");
  return {.name = "kernel-log",
          .available = opened.has_value(),
          .detail = opened ? "/dev/kmsg" : opened.error().message,
          .consequence = opened ? ""
                                : "kills by the kernel's OOM killer are counted by cgroup: no process is named, "
                                  "and on cgroup v1 those of a container that ended with it are not seen"};
}

/// CAP_DAC_OVERRIDE of this process: with it, any process's oom_score_adj may be raised.
host::Offer oom_steering_offer(const std::string& proc) {
  std::ifstream status{proc + "/self/status"};
  std::uint64_t effective = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("CapEff:")) effective = std::strtoull(line.c_str() + 7, nullptr, 16);
  const bool available = ((effective >> 1) & 1) != 0;
  return {.name = "oom-steering",
          .available = available,
          .detail = available ? "CAP_DAC_OVERRIDE" : "no CAP_DAC_OVERRIDE",
          .consequence = available ? "" : "protection.steerOom raises the processes of evictd's own user alone"};
}

/// memory.available now by each rule that can be had here, and which of them counts.
json::object describe_memory(const node::CgroupHierarchy& hierarchy, const config::NodeSettings& settings) {
  using enum config::MemoryAvailable;
  json::object result;
  for (const auto& [mode, name, rule] :
       {std::tuple{WorkingSet, "workingSet",
                   "capacity less what is used; of the root of cgroup v2 that is anon + file - inactive_file of its "
                   "memory.stat, as kubelets from 1.32 on count it"},
        std::tuple{
            MemFree, "memFree",
            "capacity less what is used; of the root of cgroup v2 that is MemTotal - MemFree - inactive_file, as "
            "kubelets before 1.32 counted it: slab and huge pages are used, too"},
        std::tuple{MemAvailable, "memAvailable", "the kernel's estimate, MemAvailable of /proc/meminfo"}}) {
    auto by_rule = settings;
    by_rule.memory_available = mode;
    if (mode == settings.memory_available) result["rule"] = fmt::format("{}: {}", name, rule);
    auto memory = node::NodeMemory::open(hierarchy, by_rule);
    if (!memory) continue;
    if (const auto reading = memory->read({})) {
      if (const auto& observed = reading->observations[core::Signal::MemoryAvailable])
        result[name] = observed->available;
    }
  }
  return result;
}

}  // namespace

json::object describe_host(const config::AgentConfiguration& agent, core::Duration shutdown_delay) {
  json::object result;
  json::array offers;
  const auto hierarchy = node::CgroupHierarchy::detect(agent.node.cgroup_mount);
  if (!hierarchy) {
    result["cgroups"] = hierarchy.error().message;
  } else {
    result["cgroups"] = node::name(hierarchy->version());
    const auto directory = hierarchy->memory(agent.node.cgroup_root);
    const auto path = directory ? directory->path() : hierarchy->root().path();
    for (const auto& offer : host::probe_offers(path, hierarchy->version() == node::CgroupVersion::v2, shutdown_delay))
      offers.push_back(describe(offer));
    offers.push_back(describe(self_test(*hierarchy, agent)));
    if (agent.notifier.has(config::NotifierSource::KernelOom)) offers.push_back(describe(kernel_log_offer()));
    if (agent.protection.steer_oom == config::SteerOom::Auto)
      offers.push_back(describe(oom_steering_offer(agent.node.proc_mount)));
    auto memory = node::NodeMemory::open(*hierarchy, agent.node);
    result["node"] = memory ? memory->node_cgroup() : memory.error().message;
    if (memory)
      if (const auto reading = memory->read({})) result["memoryCapacity"] = reading->capacity;
    if (memory) result["memoryAvailable"] = describe_memory(*hierarchy, agent.node);
  }
  for (const auto& offer : probe_runtime(agent.cri)) offers.push_back(describe(offer));
  result["offers"] = std::move(offers);
  return result;
}

}  // namespace evictd::app
