#include "events/event_filter.hpp"

#include <fmt/format.h>

#include <string_view>

#include "core/eviction.hpp"
#include "evictd.pb.h"

namespace evictd::events {
namespace {

constexpr int most_entries = 1024;
/// Of a namespace, a pod with its namespace, or a signal there is no longer one.
constexpr std::size_t longest_entry = 512;
/// Of all entries together, with about what each takes beside its text. A stream keeps them, and a node may have a
/// thousand streams; more pods than 600 by their uids are on none.
constexpr std::size_t largest_filter = 65536;
constexpr std::size_t cost_of_entry = 64;

static_assert(v1::Event::Kind_MAX < 64, "kinds_ has a bit for each kind");

constexpr std::uint64_t bit(int kind) { return std::uint64_t{1} << static_cast<unsigned>(kind); }

Result<void> check(const google::protobuf::RepeatedPtrField<std::string>& names, std::string_view list) {
  if (names.size() > most_entries)
    return fail(
        fmt::format("filter.{}: there are {} entries, and at most {} are taken", list, names.size(), most_entries));
  for (int i = 0; i < names.size(); ++i) {
    if (names[i].empty()) return fail(fmt::format("filter.{}[{}] is empty", list, i));
    if (names[i].size() > longest_entry)
      return fail(
          fmt::format("filter.{}[{}] has {} bytes, and at most {} are taken", list, i, names[i].size(), longest_entry));
  }
  return {};
}

Result<void> check_size(const v1::EventFilter& filter) {
  std::size_t sum = 0;
  for (const auto* names : {&filter.namespaces(), &filter.pods(), &filter.signals()})
    for (const auto& name : *names) sum += name.size() + cost_of_entry;
  if (sum <= largest_filter) return {};
  return fail(fmt::format("filter: its entries take {} bytes with {} for each, and at most {} are taken", sum,
                          cost_of_entry, largest_filter));
}

}  // namespace

Result<EventFilter> EventFilter::make(const v1::EventFilter& filter) {
  EventFilter result;
  if (filter.kinds_size() > most_entries)
    return fail(
        fmt::format("filter.kinds: there are {} entries, and at most {} are taken", filter.kinds_size(), most_entries));
  if (filter.kinds_size() > 0) result.kinds_ = bit(v1::Event::GAP);
  for (const int kind : filter.kinds()) {
    if (!v1::Event::Kind_IsValid(kind) || kind == v1::Event::KIND_UNSPECIFIED)
      return fail(fmt::format("filter.kinds: {} is no kind of event that this evictd knows", kind));
    result.kinds_ |= bit(kind);
  }
  for (const auto& checked :
       {check(filter.namespaces(), "namespaces"), check(filter.pods(), "pods"), check(filter.signals(), "signals")})
    if (!checked) return std::unexpected(checked.error());
  if (const auto checked = check_size(filter); !checked) return std::unexpected(checked.error());
  result.namespaces_.insert(filter.namespaces().begin(), filter.namespaces().end());
  for (const auto& pod : filter.pods()) {
    const auto slash = pod.find('/');
    if (slash == std::string::npos) {
      result.pods_.insert(pod);
    } else if (slash == 0 || slash + 1 == pod.size()) {
      return fail(fmt::format("filter.pods: \"{}\" is no \"namespace/name\"", pod));
    } else {
      result.qualified_pods_[pod.substr(0, slash)].insert(pod.substr(slash + 1));
    }
  }
  for (const auto& signal : filter.signals()) {
    if (!core::parse_cause(signal)) return fail(fmt::format("filter.signals: there is no signal \"{}\"", signal));
    result.signals_.insert(signal);
  }
  return result;
}

bool EventFilter::passes(const v1::Event& event) const {
  if (event.kind() == v1::Event::GAP) return true;
  if ((kinds_ & bit(event.kind())) == 0) return false;
  if (!signals_.empty() && !signals_.contains(event.signal())) return false;
  if (!namespaces_.empty() && (!event.has_pod() || !namespaces_.contains(event.pod().namespace_()))) return false;
  return (pods_.empty() && qualified_pods_.empty()) || passes_pod(event);
}

bool EventFilter::passes_pod(const v1::Event& event) const {
  if (!event.has_pod()) return false;
  const auto& pod = event.pod();
  if (pods_.contains(pod.uid()) || pods_.contains(pod.name())) return true;
  const auto found = qualified_pods_.find(pod.namespace_());
  return found != qualified_pods_.end() && found->second.contains(pod.name());
}

}  // namespace evictd::events
