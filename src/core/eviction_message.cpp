#include "core/eviction_message.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <variant>

#include "core/pod_resources.hpp"
#include "core/saturating.hpp"
#include "core/signal.hpp"

namespace evictd::core {
namespace {

std::string print_amount(Signal signal, std::int64_t amount) {
  return (is_counted(signal) ? Quantity::count(amount) : Quantity::bytes(amount)).to_string();
}

/// A quantity as configured; a percentage resolved, which the kubelet prints with binary suffixes whatever it counts.
std::string print_threshold(const Threshold& threshold, std::int64_t capacity) {
  if (const auto* quantity = std::get_if<Quantity>(&threshold.value.value)) return quantity->to_string();
  return Quantity::bytes(threshold.value.of(capacity)).to_string();
}

std::string sentence(std::string_view what, std::string_view name, std::string_view usage, std::string_view request,
                     std::string_view resource) {
  std::string text(what);
  text.append(" ").append(name).append(" was using ").append(usage).append(", request is ").append(request);
  return text.append(", has larger consumption of ").append(resource).append(". ");
}

std::optional<Quantity> container_usage(RankBy by, const ContainerUsage& usage) {
  if (by == RankBy::Memory && usage.working_set) return Quantity::bytes(*usage.working_set);
  if (by == RankBy::EphemeralStorage && usage.rootfs.bytes && usage.logs.bytes)
    return Quantity::bytes(saturating_add(*usage.rootfs.bytes, *usage.logs.bytes));
  return std::nullopt;
}

const Container* find_container(const Pod& pod, std::string_view name) {
  for (const auto* containers : {&pod.containers, &pod.init_containers}) {
    const auto found = std::ranges::find(*containers, name, &Container::name);
    if (found != containers->end()) return &*found;
  }
  return nullptr;
}

void append(std::string& list, std::string_view item) {
  if (!list.empty()) list += ',';
  list += item;
}

void add_pod_sentence(EvictionMessage& message, Signal signal, const Pod& pod, const PodUsage& usage) {
  if (rank_by(signal) != RankBy::Memory || !usage.working_set || !pod.resources) return;
  const auto request = pod.resources->requests.find("memory");
  if (request == pod.resources->requests.end()) return;
  const auto used = Quantity::bytes(*usage.working_set).to_string();
  message.text += sentence("Pod", pod.name, used, request->second.to_string(), resource_of(signal));
  message.annotations["offending_pod"] = pod.name;
  message.annotations["offending_pod_usage"] = used;
}

void add_container_sentences(EvictionMessage& message, Signal signal, const Pod& pod, const PodUsage& usage) {
  std::string names;
  std::string amounts;
  for (const auto& measured : usage.containers) {
    const auto* container = find_container(pod, measured.name);
    const auto used = container_usage(rank_by(signal), measured);
    if (container == nullptr || !used) continue;
    const auto request = container_request(*container, resource_of(signal));
    if (*used <= request) continue;
    message.text += sentence("Container", container->name, used->to_string(), request.to_string(), resource_of(signal));
    append(names, container->name);
    append(amounts, used->to_string());
  }
  message.annotations["offending_containers"] = names;
  message.annotations["offending_containers_usage"] = amounts;
}

}  // namespace

EvictionMessage eviction_message(const Threshold& acted, const Observation& observation, const Pod& pod,
                                 const std::optional<PodUsage>& usage) {
  EvictionMessage message;
  message.text.append("The node was low on resource: ").append(resource_of(acted.signal)).append(". ");
  message.text.append("Threshold quantity: ").append(print_threshold(acted, observation.capacity));
  message.text.append(", available: ").append(print_amount(acted.signal, observation.available)).append(". ");
  if (!usage) return message;
  add_pod_sentence(message, acted.signal, pod, *usage);
  add_container_sentences(message, acted.signal, pod, *usage);
  message.annotations["starved_resource"] = resource_of(acted.signal);
  return message;
}

}  // namespace evictd::core
