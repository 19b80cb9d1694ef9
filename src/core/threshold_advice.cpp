#include "core/threshold_advice.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/signal.hpp"

namespace evictd::core {
namespace {

constexpr std::int64_t mib = 1 << 20;

/// Fewer evictions than this say little about the worst.
constexpr std::uint64_t enough_crossings = 3;
constexpr std::chrono::hours enough_time{1};

/// All but a tenth can be cache: beyond that the division below would ask for more than there is.
constexpr double largest_share = 0.9;

/// Less than a byte is the error of a division.
std::int64_t up_to_mib(double bytes) { return static_cast<std::int64_t>(std::ceil((bytes - 1) / mib)) * mib; }

/// "412.3Mi"; one digit behind the point is as exact as the measurement.
std::string mebibytes(double bytes) {
  const auto tenths = static_cast<std::int64_t>(std::llround(bytes / mib * 10));
  return std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + "Mi";
}

std::string percent(double share) { return std::to_string(std::lround(share * 100)) + '%'; }

Duration in_whole_ms(Duration time) { return std::chrono::ceil<std::chrono::milliseconds>(time); }

class Sum {
 public:
  void add(std::string what, std::string arithmetic, double bytes) {
    total_ += bytes;
    advice_.steps.push_back({std::move(what), std::move(arithmetic), std::llround(bytes)});
  }
  void doubt(std::string line) { advice_.doubts.push_back(std::move(line)); }

  [[nodiscard]] ThresholdAdvice advice() && {
    advice_.bytes = std::max(up_to_mib(total_), mib);
    return std::move(advice_);
  }

 private:
  ThresholdAdvice advice_;
  double total_ = 0;
};

bool is_whole_node_memory(Signal signal) { return signal == Signal::MemoryAvailable; }

}  // namespace

ThresholdAdvice suggest_memory_threshold(const MemoryEvidence& evidence, Duration assumed_release) {
  Sum sum;
  if (evidence.watermarks)
    sum.add("what the kernel keeps for itself", "low watermark of all zones", double(evidence.watermarks->low));

  const bool seen = evidence.crossings > 0 && evidence.release_time > Duration::zero();
  const auto release = in_whole_ms(seen ? evidence.release_time : assumed_release);
  const double taken = evidence.peak_fill_rate * std::chrono::duration<double>(release).count();
  sum.add("what is taken until the first memory is back",
          mebibytes(evidence.peak_fill_rate) + "/s x " + to_string(release) + (seen ? "" : " (assumed)"), taken);

  const double beyond = static_cast<double>(evidence.overshoot) - taken;
  if (beyond > 0)
    sum.add("what it once fell short by beyond that",
            mebibytes(static_cast<double>(evidence.overshoot)) + " - " + mebibytes(taken), beyond);

  const double needed_free = std::max(taken, static_cast<double>(evidence.overshoot));
  const double share = std::clamp(evidence.reclaimable_share, 0.0, largest_share);
  if (share > 0)
    sum.add("file cache that counts as available and has to be taken back first",
            percent(share) + " of what was available: " + mebibytes(needed_free) + " / " + percent(1 - share) + " - " +
                mebibytes(needed_free),
            needed_free / (1 - share) - needed_free);

  if (evidence.crossings < enough_crossings)
    sum.doubt("only " + std::to_string(evidence.crossings) +
              (evidence.crossings == 1 ? " eviction for memory was seen" : " evictions for memory were seen"));
  if (evidence.watched < enough_time)
    sum.doubt("the node was watched for " + to_string(std::chrono::floor<std::chrono::seconds>(evidence.watched)) +
              " only: its worst hour may be to come");
  if (evidence.peak_fill_rate <= 0) sum.doubt("memory was never seen to be taken");
  return std::move(sum).advice();
}

std::vector<std::string> doubtful_thresholds(std::span<const Threshold> thresholds, const Observations& observations,
                                             const std::optional<ZoneWatermarks>& watermarks) {
  std::vector<std::string> lines;
  const auto say = [&](const Threshold& threshold, const std::string& what) {
    lines.push_back(to_string(threshold) + ": " + what);
  };
  for (const auto& threshold : thresholds) {
    if (!threshold.is_configured()) continue;
    const auto& observation = observations[threshold.signal];
    if (!observation) {
      say(threshold, "it cannot fire while the signal is not measured on this node");
      continue;
    }
    const auto value = required(threshold, observation->capacity, Enforce::value_only);
    if (value <= 0)
      say(threshold, "it can never fire: less than nothing is not available");
    else if (value >= observation->capacity)
      say(threshold, "it is always met: the node has no more than that");
    else if (is_whole_node_memory(threshold.signal) && watermarks && value < watermarks->min)
      say(threshold, "it can hardly fire: the kernel never gives out its last " +
                         Quantity::bytes(watermarks->min / mib * mib).to_string() + " (min watermark of all zones)");
    else if (is_whole_node_memory(threshold.signal) && watermarks && value < watermarks->low)
      say(threshold, "it fires late: below " + Quantity::bytes(watermarks->low / mib * mib).to_string() +
                         " (low watermark of all zones) the kernel reclaims already");
  }
  return lines;
}

}  // namespace evictd::core
