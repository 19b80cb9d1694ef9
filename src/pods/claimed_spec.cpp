#include "pods/claimed_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "core/quantity.hpp"
#include "pods/annotated_spec.hpp"
#include "pods/infer.hpp"

namespace evictd::pods {
namespace {

using core::QosClass;

/// What a container's class and requests follow from; nothing vouches for any other resource.
constexpr std::array<std::string_view, 2> vouched_resources{"cpu", "memory"};

/// So many false claims of a pod are told each by itself. All are false for one reason, and the rest adds nothing.
constexpr std::size_t told_claims = 4;

bool is_vouched(std::string_view resource) {
  return std::ranges::find(vouched_resources, resource) != vouched_resources.end();
}

core::Quantity amount(const core::ResourceList& list, std::string_view resource) {
  const auto found = list.find(resource);
  return found == list.end() ? core::Quantity{} : found->second;
}

/// What a container requests of a resource by its numbers, and the most that it may have asked for. An oom_score_adj is
/// a whole thousandth of the capacity, and the lowest one stands for all that is more.
struct Request {
  core::Quantity number;
  core::Quantity most;
};

std::optional<Request> memory_request(const LinuxResources& numbers, QosClass qos, std::int64_t memory_capacity) {
  constexpr std::int64_t lowest_adj = 3;  // 2 up to Kubernetes 1.19
  if (qos == QosClass::Guaranteed ? numbers.memory_limit <= 0 : numbers.oom_score_adj == 0) return std::nullopt;
  const auto number = amount(infer_container("", numbers, qos, memory_capacity).resources.requests, "memory");
  if (qos == QosClass::Guaranteed || numbers.oom_score_adj < 0) return Request{number, number};
  const auto step = memory_capacity / (numbers.oom_score_adj <= lowest_adj ? 100 : 1000) + 1;
  return Request{number, number + core::Quantity::bytes(step)};
}

/// By the shares, in every class: there may be no quota for what has whole processors.
std::optional<Request> cpu_request(const LinuxResources& numbers) {
  if (numbers.cpu_shares == 0) return std::nullopt;
  const auto number = amount(infer_container("", numbers, std::nullopt, 0).resources.requests, "cpu");
  return Request{number, number};
}

/// Nothing: the numbers do not say.
std::optional<Request> request_of(const CreatedContainer& container, std::string_view resource, QosClass qos,
                                  std::int64_t memory_capacity) {
  if (qos == QosClass::BestEffort) return Request{};
  std::optional<Request> told;
  if (container.resources)
    told = resource == "cpu" ? cpu_request(*container.resources)
                             : memory_request(*container.resources, qos, memory_capacity);
  return told || !container.is_silent ? told : Request{};
}

class Holder {
 public:
  Holder(QosClass qos, std::int64_t memory_capacity, std::vector<Error>& warnings)
      : qos_{qos}, memory_capacity_{memory_capacity}, warnings_{warnings} {}

  /// To be called once all containers are held.
  void tell_rest() {
    if (false_claims_ <= told_claims) return;
    warnings_.push_back({fmt::format("annotation {}: {} more of such claims are not believed either",
                                     pod_spec_annotation, false_claims_ - told_claims)});
  }

  /// `counts_when_exited`: an ordinary init container runs before the others, and counts also when it is through.
  void hold(core::Container& claimed, std::span<const CreatedContainer> created, bool counts_when_exited) {
    auto& requests = claimed.resources.requests;
    std::erase_if(requests, [](const auto& entry) { return !is_vouched(entry.first); });
    const auto its = std::ranges::find(created, claimed.name, &CreatedContainer::name);
    const bool counts = its != created.end() && (counts_when_exited || !its->exited);
    if (!counts && qos_ != QosClass::BestEffort) return requests.clear();
    const auto& container = its == created.end() ? CreatedContainer{} : *its;
    for (const auto resource : vouched_resources)
      if (const auto request = request_of(container, resource, qos_, memory_capacity_))
        hold(claimed, resource, *request);
  }

 private:
  void hold(core::Container& claimed, std::string_view resource, const Request& request) {
    auto& requests = claimed.resources.requests;
    const auto claim = amount(requests, resource);
    if (claim <= request.most) return;
    requests.insert_or_assign(std::string(resource), request.number);
    if (++false_claims_ > told_claims) return;
    warnings_.push_back({fmt::format(
        "annotation {}: container \"{}\" claims to request {} of {}, which cannot be by what it was created with; {} "
        "is believed; if whoever makes pods in this namespace may decide that, name it in podSources.trustedNamespaces",
        pod_spec_annotation, claimed.name, claim.to_string(), resource, request.number.to_string())});
  }

  QosClass qos_;
  std::int64_t memory_capacity_;
  std::vector<Error>& warnings_;
  std::size_t false_claims_ = 0;
};

}  // namespace

void hold_to_numbers(core::Pod& pod, std::span<const CreatedContainer> created, std::int64_t memory_capacity,
                     std::vector<Error>& warnings) {
  const bool is_any_silent = std::ranges::any_of(created, &CreatedContainer::is_silent);
  if (!pod.status_qos && !is_any_silent) return;
  pod.resources.reset();
  pod.overhead.clear();
  Holder holder{pod.status_qos.value_or(QosClass::Burstable), memory_capacity, warnings};
  for (auto& container : pod.init_containers) holder.hold(container, created, !container.restart_always);
  for (auto& container : pod.containers) holder.hold(container, created, false);
  holder.tell_rest();
}

void take_mapped_ports(core::Pod& pod, std::vector<core::HostPort> mapped) {
  for (auto* containers : {&pod.init_containers, &pod.containers})
    for (auto& container : *containers) container.host_ports.clear();
  pod.host_ports = std::move(mapped);
}

std::optional<std::int64_t> believed_grace(std::optional<std::int64_t> claimed, std::optional<std::int64_t> told) {
  if (told || !claimed) return told;
  return std::min(*claimed, longest_claimed_grace);
}

}  // namespace evictd::pods
