#include "metrics/event_counters.hpp"

#include <evictd.pb.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/local_storage.hpp"
#include "core/signal.hpp"

namespace evictd::metrics {
namespace {

using Kind = v1::Event;
using core::LocalStorageLimit;

constexpr std::array storage_limits{LocalStorageLimit::EmptyDir, LocalStorageLimit::Pod, LocalStorageLimit::Container};

/// The steps that an EVICTION_FAILED names: the first two are agent::Recorder's, the others the calls of
/// evict::CallFailed.
constexpr std::array failing_steps{"select", "begin", "kill", "StopContainer", "ListPodSandbox", "StopPodSandbox"};

std::string_view kind_of(const v1::Threshold& threshold) {
  const auto& grace = threshold.grace_period();
  return grace.seconds() == 0 && grace.nanos() == 0 ? "hard" : "soft";
}

/// "PERMISSION_DENIED: only administrators may …" without what it says to people.
std::string_view code_of(std::string_view outcome) { return outcome.substr(0, outcome.find(':')); }

/// The kubelet's own, from 5 ms on (1.36, metrics.go: DefBuckets), so that both can be shown as one; and three below,
/// since memory is read, ranked and decided upon within a few milliseconds.
const prometheus::Histogram::BucketBoundaries& age_bounds() {
  static const prometheus::Histogram::BucketBoundaries seconds{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                               0.1,    0.25,  0.5,    1,     2.5,  5,     10};
  return seconds;
}

/// What may be negative by a hair, as a counter takes it.
double amount(std::int64_t value) { return static_cast<double>(std::max<std::int64_t>(value, 0)); }

}  // namespace

EventCounters::EventCounters(prometheus::Registry& registry)
    : events_{registry, "evictd_events_total", "Events that were recorded, by kind.", {"kind"}},
      evictions_{registry,
                 "evictd_evictions_total",
                 "Pods that were chosen to go, by the signal or other cause and by the reason in the pod's status.",
                 {"signal", "reason"}},
      dry_run_evictions_{registry,
                         "evictd_dry_run_evictions_total",
                         "Pods that would have gone, had evictd not run with --dry-run or only watched.",
                         {"signal", "reason"}},
      failures_{registry,
                "evictd_eviction_failures_total",
                "Steps of evictions that failed; \"select\" means that no pod could be chosen.",
                {"step"}},
      crossings_{registry,
                 "evictd_thresholds_crossed_total",
                 "Thresholds that were met and had not been before, by signal and by hard or soft.",
                 {"signal", "kind"}},
      recoveries_{registry, "evictd_recoveries_total", "Shortages that were over before a pod was chosen.", {"signal"}},
      cleanups_{registry,
                "evictd_cleanups_total",
                "Evictions whose cleanup ended, by outcome: done, or timed_out.",
                {"outcome"}},
      reclaims_{registry,
                "evictd_node_reclaims_total",
                "Times that dead containers and unused images were removed instead of a pod.",
                {"signal"}},
      rejections_{registry,
                  "evictd_admission_rejections_total",
                  "Pods that were not admitted, by the handler that rejected them and its reason.",
                  {"handler", "reason"}},
      audited_calls_{registry,
                     "evictd_audited_calls_total",
                     "Calls of the API that asked for a change, by call and outcome: done, or a gRPC status.",
                     {"call", "outcome"}},
      source_failures_{registry,
                       "evictd_source_failures_total",
                       "Times that a source of wake-ups or of measurements stopped working.",
                       {"source"}},
      shutdowns_{registry, "evictd_node_shutdowns_total", "Shutdowns of the node, by phase reached.", {"phase"}},
      kernel_kills_{registry,
                    "evictd_kernel_oom_kills_total",
                    "Processes of pods that the kernel's OOM killer killed, by what was short (limit: the pod's own, "
                    "node, unknown) and by whether evictd would have taken the same pod.",
                    {"shortage", "own_choice"}},
      released_bytes_{
          add_counter(registry, "evictd_released_bytes_total", "Memory that came back from evicted pods, in bytes.")},
      images_removed_{add_counter(registry, "evictd_images_removed_total",
                                  "Unused images that were removed because a disk was short.")},
      containers_removed_{add_counter(registry, "evictd_containers_removed_total",
                                      "Dead containers that were removed because a disk was short.")},
      config_changes_{
          add_counter(registry, "evictd_config_reloads_total",
                      "Changes of the configuration and of thresholds that were told, without those that were refused "
                      "or are held back.")},
      trimmed_bytes_{
          add_counter(registry, "evictd_trimmed_bytes_total",
                      "Memory that trims of file cache gave back, whether or not pods went all the same, in bytes.")},
      stats_ages_{prometheus::BuildHistogram()
                      .Name("evictd_eviction_stats_age_seconds")
                      .Help("How old the numbers were by which a pod was chosen, since they were read from the kernel, "
                            "by signal; in a dry run as well.")
                      .Register(registry)} {
  for (const auto signal : core::all_signals()) {
    evictions_.count({core::name(signal), "Evicted"}, 0);
    for (const auto* kind : {"hard", "soft"}) crossings_.count({core::name(signal), kind}, 0);
  }
  for (const auto limit : storage_limits) evictions_.count({core::name(limit), "Evicted"}, 0);
  for (const auto* step : failing_steps) failures_.count({step}, 0);
  for (const auto* outcome : {"done", "timed_out"}) cleanups_.count({outcome}, 0);
  for (const auto* own_choice : {"true", "false"}) kernel_kills_.count({"node", own_choice}, 0);
}

void EventCounters::count(const v1::Event& event) {
  events_.count({v1::Event::Kind_Name(event.kind())});
  switch (event.kind()) {
    case Kind::EVICTION_INTENDED: return count_intent(event);
    case Kind::NODE_RECLAIMED: return count_reclaim(event);
    case Kind::EVICTION_FAILED: return failures_.count({event.eviction_failed().step()});
    case Kind::THRESHOLD_CROSSED:
      return crossings_.count({event.signal(), kind_of(event.threshold_crossed().threshold())});
    case Kind::RECOVERED: return recoveries_.count({event.signal()});
    case Kind::CLEANUP_DONE: return cleanups_.count({event.cleanup_done().timed_out() ? "timed_out" : "done"});
    case Kind::MEMORY_RELEASED: return released_bytes_.Increment(amount(event.memory_released().released_bytes()));
    case Kind::ADMISSION_REJECTED:
      return rejections_.count({event.admission_rejected().handler(), event.admission_rejected().reason()});
    case Kind::AUDIT: return audited_calls_.count({event.audit().call(), code_of(event.audit().outcome())});
    case Kind::CONFIG_CHANGED:
      // Without a change something was refused, or is held back.
      if (!event.config_changed().changes().empty()) config_changes_.Increment();
      return;
    case Kind::TRIMMED: return trimmed_bytes_.Increment(amount(event.trimmed().freed_bytes()));
    case Kind::SOURCE_DEGRADED:
      if (event.source_degraded().state().starts_with("failed"))
        source_failures_.count({event.source_degraded().source()});
      return;
    case Kind::NODE_SHUTDOWN: return shutdowns_.count({event.node_shutdown().phase()});
    case Kind::KERNEL_OOM:
      return kernel_kills_.count({event.kernel_oom().shortage(), event.kernel_oom().own_choice() ? "true" : "false"},
                                 event.kernel_oom().kills());
    default: return;
  }
}

void EventCounters::count_intent(const v1::Event& event) {
  auto& counters = event.eviction_intended().dry_run() ? dry_run_evictions_ : evictions_;
  counters.count({event.signal(), event.eviction_intended().reason()});
  if (event.eviction_intended().has_observation_age()) observe_age(event);
}

/// Only a threshold's decision has an age, so there are as many histograms as signals.
void EventCounters::observe_age(const v1::Event& event) {
  const auto& age = event.eviction_intended().observation_age();
  auto& histogram = stats_age_[event.signal()];
  if (histogram == nullptr) histogram = &stats_ages_.Add({{"signal", event.signal()}}, age_bounds());
  histogram->Observe(static_cast<double>(age.seconds()) + static_cast<double>(age.nanos()) / 1e9);
}

void EventCounters::count_reclaim(const v1::Event& event) {
  reclaims_.count({event.signal()});
  images_removed_.Increment(amount(event.node_reclaimed().images_removed()));
  containers_removed_.Increment(amount(event.node_reclaimed().containers_removed()));
}

}  // namespace evictd::metrics
