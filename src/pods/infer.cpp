#include "pods/infer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/number.hpp"
#include "core/qos.hpp"
#include "core/quantity.hpp"
#include "pods/priority_class.hpp"

namespace evictd::pods {
namespace {

constexpr std::int64_t guaranteed_oom_score_adj = -997;  // -998 up to Kubernetes 1.19
constexpr std::int64_t lowest_burstable = 2;
constexpr std::int64_t highest_burstable = 999;
constexpr std::int64_t best_effort_oom_score_adj = 1000;

constexpr std::int64_t most_shares = 262'144;              // of cgroup v1's cpu.shares
constexpr std::int64_t longest_quota = 1'000'000'000'000;  // µs, far beyond any machine; what is above would overflow

bool is_burstable(std::int64_t oom_score_adj) {
  return lowest_burstable <= oom_score_adj && oom_score_adj <= highest_burstable;
}

core::Quantity milli_cpu(std::int64_t value) { return *core::Quantity::parse(fmt::format("{}m", value)); }

/// The kubelet gives shares = milli-CPU * 1024 / 1000, rounded down and at least 2; rounding up undoes that exactly.
std::optional<core::Quantity> cpu_request(std::int64_t shares) {
  if (shares <= 2 || shares > most_shares) return std::nullopt;
  return milli_cpu((shares * 1000 + 1023) / 1024);
}

std::optional<core::Quantity> cpu_limit(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || quota > longest_quota || period <= 0) return std::nullopt;
  return milli_cpu(quota * 1000 / period);
}

std::string_view find(const std::map<std::string, std::string, std::less<>>& texts, std::string_view key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::string_view{} : found->second;
}

}  // namespace

std::optional<core::QosClass> qos_from_oom_score_adj(std::span<const LinuxResources> containers) {
  const auto any = [&](auto matches) {
    return std::ranges::any_of(containers, matches, &LinuxResources::oom_score_adj);
  };
  if (any(is_burstable)) return core::QosClass::Burstable;
  if (any([](auto adj) { return adj <= guaranteed_oom_score_adj; })) return core::QosClass::Guaranteed;
  if (any([](auto adj) { return adj == best_effort_oom_score_adj; })) return core::QosClass::BestEffort;
  return std::nullopt;
}

core::Container infer_container(std::string name, const LinuxResources& resources, std::optional<core::QosClass> qos,
                                std::int64_t memory_capacity) {
  core::Container container{.name = std::move(name)};
  auto& [requests, limits] = container.resources;

  if (resources.memory_limit > 0) limits["memory"] = core::Quantity::bytes(resources.memory_limit);
  if (const auto limit = cpu_limit(resources.cpu_quota, resources.cpu_period)) limits["cpu"] = *limit;
  if (qos == core::QosClass::Guaranteed) {
    requests = limits;
    return container;
  }

  if (const auto request = cpu_request(resources.cpu_shares)) requests["cpu"] = *request;
  if (qos == core::QosClass::Burstable && is_burstable(resources.oom_score_adj)) {
    auto request = core::request_from_oom_score_adj(static_cast<int>(resources.oom_score_adj), memory_capacity);
    if (resources.memory_limit > 0) request = std::min(request, resources.memory_limit);
    requests["memory"] = core::Quantity::bytes(request);
  }
  return container;
}

void apply_update(core::Container& container, LinuxResources given, std::optional<core::QosClass> qos) {
  given.oom_score_adj = 0;
  const auto inferred = infer_container(container.name, given, qos, 1).resources;
  for (const auto& [resource, limit] : inferred.limits) container.resources.limits.insert_or_assign(resource, limit);
  for (const auto& [resource, request] : inferred.requests)
    container.resources.requests.insert_or_assign(resource, request);
}

void infer_priority(core::Pod& pod, std::vector<Error>& warnings) {
  auto class_name = find(pod.annotations, priority_class_key);
  if (class_name.empty()) class_name = find(pod.labels, priority_class_key);
  pod.priority_class_name = class_name;
  pod.priority = priority_of_class(class_name);

  const auto written = pod.annotations.find(priority_annotation);
  if (written == pod.annotations.end()) return;
  if (const auto priority = core::whole_number<std::int32_t>(written->second))
    pod.priority = priority;
  else
    warnings.push_back({fmt::format("annotation {}: \"{}\" is not a whole number of 32 bits; ignored",
                                    priority_annotation, written->second)});
}

std::optional<std::int64_t> infer_termination_grace(const std::map<std::string, std::string, std::less<>>& annotations,
                                                    std::vector<Error>& warnings) {
  const auto written = annotations.find(termination_grace_key);
  if (written == annotations.end()) return std::nullopt;
  const auto seconds = core::whole_number<std::int64_t>(written->second);
  if (seconds && *seconds >= 0) return seconds;
  warnings.push_back({fmt::format("annotation {}: \"{}\" is not a number of seconds; ignored", termination_grace_key,
                                  written->second)});
  return std::nullopt;
}

}  // namespace evictd::pods
