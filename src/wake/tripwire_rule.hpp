#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/duration.hpp"

namespace evictd::wake {

struct TripwireSettings {
  /// From one trip that was for nothing until it may stand again: such a trip costs a pass, and a moment of whoever
  /// fills the page cache. Each further one that came sooner than the rest before it was long doubles that.
  core::Duration shortest_rest = std::chrono::seconds(10);
  core::Duration longest_rest = std::chrono::minutes(5);
  /// The pods are held no longer than this while memory is short: a victim is killed within some milliseconds, and
  /// where there is none it helps nobody that all are held.
  core::Duration longest_hold = std::chrono::seconds(1);
  /// Bytes: it is not set where less is left until a threshold. There the sampler looks every millisecond, and a little
  /// page cache is enough to trip it.
  std::int64_t clearance = std::int64_t{8} << 20;
};

/// When a tripwire stands: until it fired and a victim was killed, or until a reading says that nothing is short, and
/// again once it is worth it. Pure: no I/O, no clock. Times do not go back.
class TripwireRule {
 public:
  explicit TripwireRule(const TripwireSettings& settings) : settings_{settings} {}

  enum class Wish : std::uint8_t {
    Stand,  ///< at the first threshold, wherever that lies now
    Keep,   ///< as it is: whoever allocates is held until a pass has acted
    Lift,
  };
  struct Decision {
    Wish wish = Wish::Stand;
    std::string why{};                     ///< why it does not stand, as the status says it
    std::optional<core::Instant> until{};  ///< when to decide anew; absent: when something moved
    bool news = false;                     ///< memory is short, and no pass has seen it
  };

  /// What a pass has found.
  struct Seen {
    core::Instant read{};  ///< when; a reading that is known already changes nothing
    /// Bytes until the first hard memory threshold is met, below 0: one is. Absent: there is none.
    std::optional<std::int64_t> distance{};
    bool releasing = false;    ///< victims are killed, and their memory is coming back
    bool nobody_goes = false;  ///< memory is short, and nobody may be evicted for it
  };

  /// The kernel reported it. Whether that is news: a pass should look.
  [[nodiscard]] bool tripped(core::Instant now);
  void passed(const Seen& seen, core::Instant now);

  /// What needs no reading of memory. Absent: by_distance() decides.
  [[nodiscard]] std::optional<Decision> decide(core::Instant now);
  /// `distance`: bytes until the first hard threshold is met, below 0 where one is; absent: there is none. `stands`:
  /// whether it stands now.
  [[nodiscard]] Decision by_distance(std::optional<std::int64_t> distance, bool stands, core::Instant now);

  [[nodiscard]] std::uint64_t trips() const { return trips_; }
  /// Trips after which nothing was short, nor nearly so.
  [[nodiscard]] std::uint64_t spurious() const { return spurious_; }

 private:
  void was_for_nothing(core::Instant now);
  void rest(std::string_view why, core::Instant now);
  [[nodiscard]] Decision hold() const;
  [[nodiscard]] Decision resting() const;

  TripwireSettings settings_;
  std::optional<core::Instant> held_since_;  // somebody is held, or may be
  bool was_short_ = false;                   // since then
  bool given_up_ = false;                    // memory is short, and holding did not help
  bool fired_early_ = false;                 // on the way to a threshold; it has not been set anew since
  std::int64_t stood_at_ = 0;                // bytes until the threshold, when it was set or left last
  bool is_short_ = false;
  bool releasing_ = false;
  core::Instant read_ = core::Instant::min();
  std::optional<core::Instant> rests_until_;
  core::Duration rest_{};
  std::string_view why_rest_;
  std::uint64_t trips_ = 0;
  std::uint64_t spurious_ = 0;
};

}  // namespace evictd::wake
