#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/duration.hpp"
#include "wake/gauge.hpp"
#include "wake/poll_interval.hpp"
#include "wake/psi_trigger.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// Is told that memory may soon be short. On the reactor.
class ApproachListener {
 public:
  virtual void approaches() = 0;
  /// And that it is not, at the first look, or by the first pass's reading, at which no threshold is near or met: not
  /// before it was told the other.
  virtual void recedes() {}
  /// Whether it is told also when a threshold can be met before long: what it does then holds up the next look.
  [[nodiscard]] virtual bool is_quick() const { return false; }

 protected:
  ~ApproachListener() = default;
};

/// Looks at what runs out, at an interval that follows the distance to the thresholds (PollInterval), with one timer
/// for all gauges. Only gauges with a level to be armed are looked at. A gauge that cannot be read is tried again every
/// second; the observer of the node says why.
///
/// A gauge that is nearly due when another is looked at is looked at along with it, so of PollInterval's bound on looks
/// a second this keeps to four thirds.
class Sampler final : public Source, public FastPolling {
 public:
  Sampler(const boost::asio::any_io_executor& reactor, Wakes& wakes, std::vector<Gauge> gauges);

  /// From now on it is told after each look at memory of which a threshold is near (`near`), or met. Not where a pass
  /// is to come first: a crossing was seen that none has read, or pods go for a hard threshold. Outlives this.
  void tell(ApproachListener& listener) { listeners_.push_back(&listener); }
  /// A threshold on memory is looked at as often: it can be met within so much time.
  static constexpr core::Duration near = std::chrono::milliseconds(100);
  /// And if it can be within so little, only those are told who are quick.
  static constexpr core::Duration too_near = std::chrono::milliseconds(5);

  /// Looks at memory at once, and at the shortest interval for so long.
  void poll_fast(core::Duration time) override;

  void arm(const Arming& arming) override;
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  /// Of a signal that has a cheaper look: how much that hides.
  struct Hidden {
    core::Instant time;         // of the exact look
    std::int64_t exact = 0;     // what it read
    std::int64_t at_least = 0;  // what the cheaper look read just before it
  };
  struct Watched {
    Gauge gauge;
    Notifier notifier;
    PollInterval poll{gauge.pace};
    core::Instant due = core::Instant::max();
    core::Duration interval{};  // between the last look and `due`
    core::Instant armed{};      // when what it was armed by was read
    std::optional<Hidden> hidden{};
    std::optional<std::int64_t> level{};  // bytes of usage
    std::uint64_t looks = 0;
    bool asleep = false;
    bool unread = false;  // a crossing that no pass has read yet
  };

  static void arm(Watched& watched, const Arming& arming);
  void look(Watched& watched);
  static void see(Watched& watched);
  [[nodiscard]] static std::optional<Sample> read(Watched& watched);
  [[nodiscard]] static bool suffices(const Watched& watched, std::int64_t at_least, core::Instant time);
  static void set_due(Watched& watched, core::Instant looked, bool far);
  [[nodiscard]] static bool is_near(const Watched& watched);
  [[nodiscard]] bool awaits_pass(const Watched& watched) const;
  void tell_of_distance(bool approaches, bool too_near);
  void look_at_due();
  void schedule();

  boost::asio::steady_timer timer_;
  core::Instant scheduled_ = core::Instant::max();
  std::vector<Watched> watched_;
  std::vector<ApproachListener*> listeners_;  // in the order in which they are told
  bool told_near_ = false;
  bool nobody_goes_ = false;                                    // see Arming
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // looks that are under way outlive this
};

}  // namespace evictd::wake
