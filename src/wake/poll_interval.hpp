#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/duration.hpp"

namespace evictd::wake {

/// What is assumed of something that runs out. Units are the signal's: bytes, inodes or process ids.
struct PollSettings {
  double rate = 0;  ///< units a second, above 0: it is taken no faster than this
  /// Units a second: what is seen faster than `rate` is believed up to here. Preallocation takes any amount at once.
  double fastest = 0;
  core::Duration shortest = std::chrono::milliseconds(1);  ///< between two looks, however near a threshold is
  core::Duration longest = std::chrono::seconds(10);       ///< however far
  std::int64_t step = 1;                                   ///< a shortage that grew by less is not worth a pass
};

/// A threshold: met once less is available.
struct PollLevel {
  std::int64_t threshold = 0;
  bool hard = true;

  friend bool operator==(const PollLevel&, const PollLevel&) = default;
};

/// One look at what is available.
struct Sample {
  std::int64_t available = 0;
  core::Instant time{};    ///< not later than the reading: before the look began
  bool exact = true;       ///< false: at least so much is available, and that is above all thresholds
  core::Duration cost{0};  ///< what the look took; 0: not measured
};

/// When to look again at something that runs out, and what of it is worth a pass. Pure: no I/O, no clock.
///
/// The next look comes after distance ÷ rate, between `shortest` and `longest`; the distance is what is available above
/// the nearest threshold that is not met. From this follows, for anything taken within the rate:
///   - a crossing is seen before more than rate × (shortest + what the timer is late) has been taken beyond it: with
///     1 ms each, rate × 2 ms;
///   - while at least `d` stays available above every threshold there are at most max(rate ÷ d, 1 ÷ longest) looks a
///     second, and one more; whatever happens, 1 ÷ shortest a second, and one more.
/// A met threshold is no approach: it is watched for recovery, and a hard one for getting worse, at most 100 times a
/// second. A dear look lengthens `shortest`, for both statements, to 20 times its cost.
class PollInterval {
 public:
  explicit PollInterval(const PollSettings& settings) : settings_{settings}, rate_{settings.rate} {}

  /// A pass read this: what is met now is known, and news is what changes from here. `levels` may be in any order; none
  /// means that there is nothing to look for, and `sample` nothing.
  void arm(std::vector<PollLevel> levels, const Sample& sample);

  /// The threshold that is a reason for a pass, once for each reason: it was crossed, in either direction, since arm()
  /// or the last news, or it is hard, met, and its shortage grew by `step` and by an eighth.
  [[nodiscard]] std::optional<PollLevel> look(const Sample& sample);

  /// The time of the next look. Reading must not be later, or the promise above is worth less.
  [[nodiscard]] core::Instant next() const { return next_; }
  /// At the shortest interval until then, whatever the distance.
  void poll_fast(core::Instant now, core::Instant until);

  [[nodiscard]] const std::vector<PollLevel>& levels() const { return levels_; }  ///< lowest threshold first
  [[nodiscard]] bool any_met() const { return available_ < highest(); }           ///< at the last look
  [[nodiscard]] bool any_hard_met() const;                                        ///< the same
  [[nodiscard]] bool polling_fast(core::Instant now) const { return now < fast_until_; }
  [[nodiscard]] std::int64_t highest() const;  ///< threshold; the least number there is without levels
  [[nodiscard]] core::Duration interval() const { return interval_; }
  /// By what the last look saw, whatever hurry there is.
  [[nodiscard]] core::Duration interval_by_distance() const { return interval_at(available_); }
  /// The interval if this were available.
  [[nodiscard]] core::Duration interval_at(std::int64_t available) const;

  /// Units a second. It rises by half above what was seen between two looks, and halves each minute until it is again
  /// what the settings say.
  [[nodiscard]] double rate() const { return rate_; }

 private:
  struct Kept {  // of exact looks, and of the others: they do not compare
    std::optional<Sample> reference{};
    std::array<core::Duration, 2> costs{};
  };

  [[nodiscard]] std::int64_t step_of(const PollLevel& level) const;
  void note(const Sample& sample);
  void note_rate(Kept& kept, const Sample& sample);
  void set_next(const Sample& sample);

  PollSettings settings_;
  std::vector<PollLevel> levels_;
  std::int64_t base_ = 0;  // available when last armed or when there was news
  std::int64_t available_ = 0;
  std::array<Kept, 2> kept_{};
  core::Duration shortest_ = settings_.shortest;
  core::Duration interval_ = settings_.longest;
  core::Instant next_ = core::Instant::max();
  core::Instant fast_until_ = core::Instant::min();
  double rate_;
  core::Instant raised_{};
};

}  // namespace evictd::wake
