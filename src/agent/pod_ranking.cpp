#include "agent/pod_ranking.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <expected>
#include <utility>
#include <vector>

#include "agent/describe.hpp"
#include "agent/pod_usage.hpp"
#include "async/turns.hpp"
#include "core/action.hpp"
#include "core/eligibility.hpp"
#include "core/pod.hpp"
#include "core/qos.hpp"

namespace evictd::agent {
namespace {

/// More than a kubelet runs on a node unless told otherwise (110), all but.
constexpr std::size_t read_exactly = 100;

/// "312Mi", "1.5Gi": with two digits at least.
std::string short_bytes(std::int64_t bytes) {
  constexpr std::array suffixes{"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; std::abs(value) >= 1023.5 && unit + 1 < suffixes.size(); ++unit) value /= 1024;
  const bool fraction = unit > 0 && std::abs(value) < 9.95 && std::lround(value * 10) % 10 != 0;
  return fmt::format("{:.{}f}{}", value, fraction ? 1 : 0, suffixes[unit]);
}

std::string why_against_request(const core::PlacedPod& pod, bool memory) {
  const auto& ranked = pod.ranked;
  const auto* at_most = ranked.at_most ? "at most " : "";
  if (ranked.usage <= ranked.request) return ranked.request > 0 ? "within its request" : "uses nothing";
  if (ranked.request > 0)
    return fmt::format("uses {}{} more than it asked for", at_most, short_bytes(ranked.usage - ranked.request));
  const bool best_effort = memory && core::qos_class(*ranked.pod) == core::QosClass::BestEffort;
  return fmt::format("{}, uses {}{}", best_effort ? "best effort" : "asked for none", at_most,
                     short_bytes(ranked.usage));
}

std::string why_by_numbers(core::Signal signal, const core::PlacedPod& pod) {
  const auto& ranked = pod.ranked;
  if (!ranked.has_stats) return "was not measured: goes before others";
  switch (core::rank_by(signal)) {
    case core::RankBy::Processes:
      return ranked.usage == 1 ? "runs 1 process" : fmt::format("runs {} processes", ranked.usage);
    case core::RankBy::Inodes: return ranked.usage == 0 ? "uses nothing" : fmt::format("uses {} inodes", ranked.usage);
    case core::RankBy::Memory: return why_against_request(pod, true);
    case core::RankBy::EphemeralStorage: break;
  }
  return why_against_request(pod, false);
}

v1::RankedPod describe_placed(core::Signal signal, const core::PlacedPod& pod) {
  auto message = describe_ranked(pod.ranked);
  message.set_why(why(signal, pod));
  message.set_qos_class(std::string(core::name(core::qos_class(*pod.ranked.pod))));
  message.set_backing_off(pod.backing_off);
  return message;
}

}  // namespace

std::string why(core::Signal signal, const core::PlacedPod& pod) {
  if (core::is_critical(*pod.ranked.pod)) return "critical: never evicted";
  if (pod.ranked.nothing_to_gain) return "nothing of it runs: not evicted";
  if (pod.stuck) return "an eviction did not end it: goes last";
  return why_by_numbers(signal, pod) + (pod.backing_off ? "; came straight back: goes behind its equals" : "");
}

namespace {

std::vector<core::PlacedPod> rank(const Rankable& node, core::Signal signal) {
  async::Turns::doing("a ranking of pods");
  const auto now = std::chrono::steady_clock::now();
  const auto& pods = node.pods.pods();
  PodUsages usage;
  const auto measure = core::measure_for(core::rank_by(signal));
  if (measure == core::Measure::Memory) {
    std::vector<core::Eligibility> eligibilities;
    eligibilities.reserve(pods->size());
    for (const auto& pod : *pods) eligibilities.push_back(node.policy.eligibility(signal, *pod));
    usage = node.usage.leading_memory(pods, eligibilities, read_exactly);
  } else if (measure == core::Measure::Processes) {
    usage = node.usage.processes(*pods);
  } else {
    usage = std::as_const(node.usage).known_disk(*pods);
  }
  return node.policy.ranking(signal, *pods, usage, now);
}

}  // namespace

api::Answer<v1::RankPodsResponse> rank_pods(const Rankable& node, const v1::RankPodsRequest& request) {
  const auto signal = request.signal().empty() ? core::Signal::MemoryAvailable : core::parse_signal(request.signal());
  if (!signal)
    return std::unexpected(api::Refusal{
        api::RefusalCode::InvalidArgument,
        fmt::format("no such signal: \"{}\"; there are {}", request.signal(), fmt::join(core::signal_names(), ", "))});
  if (!node.pods.listed())
    return std::unexpected(
        api::Refusal{api::RefusalCode::FailedPrecondition, "the runtime has not told its pods yet: is it running?"});
  v1::RankPodsResponse response;
  response.set_signal(std::string(core::name(*signal)));
  response.set_unit(std::string(core::unit_of(*signal)));
  for (const auto& pod : rank(node, *signal)) *response.add_pods() = describe_placed(*signal, pod);
  return response;
}

}  // namespace evictd::agent
