#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async/turns.hpp"
#include "core/duration.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// How late the loop was.
struct Lateness {
  std::uint64_t long_turns = 0;
  core::Duration longest_turn{};
  std::uint64_t standstills = 0;
  core::Duration longest_standstill{};
  core::Duration busiest_turn{};  ///< the most processor time of a turn, long or not
};

/// Watches the reactor itself: turns longer than 100 ms, in which nothing else is seen, and standstills, in which the
/// whole process does nothing: it was stopped (SIGSTOP), frozen (cgroup), paused with its machine, or had no processor.
///
/// Turns measure themselves (async::Turns). A thread that does nothing but sleep hears of each long one when it ends,
/// and looks every few seconds whether one does not. Where it wakes late itself, it was not the turn: a turn that was
/// under way then is long only by what it was on a processor. A standstill between two of its looks is no news of its
/// own; a turn that it makes long shows by how little of it was on a processor.
///
/// What was late begins a pass, is counted, and said, each of the two once a minute at most. A turn that does not end
/// is logged while it lasts, and whoever made the watch hears of it.
class TurnWatch final : public Source {
 public:
  struct Options {
    core::Duration bound = std::chrono::milliseconds(100);  ///< ten times what a pass with an eviction takes
    /// A wake-up each, also at rest. A turn that hangs is logged before systemd's watchdog (10 s) ends evictd for it.
    core::Duration look = std::chrono::seconds(4);
    core::Duration stuck = std::chrono::seconds(1);  ///< what is under way for longer is said to hang
    core::Duration say = std::chrono::minutes(1);
  };

  /// What is to be done at once where a turn hangs, once a turn. On the thread, which does nothing else meanwhile.
  using Hangs = std::move_only_function<void()>;

  /// On the thread that runs the reactor.
  TurnWatch(boost::asio::any_io_executor reactor, Wakes& wakes, Hangs hangs)
      : TurnWatch(std::move(reactor), wakes, std::move(hangs), Options{}) {}
  TurnWatch(boost::asio::any_io_executor reactor, Wakes& wakes, Hangs hangs, Options options);
  ~TurnWatch() override;

  void arm(const Arming&) override {}
  [[nodiscard]] std::vector<SourceStatus> status() const override;
  [[nodiscard]] Lateness lateness() const;

 private:
  /// What one look found.
  struct Found {
    std::vector<async::Turn> turns;  // long ones
    core::Duration standstill{};     // zero: none
  };

  [[nodiscard]] Found look(core::Instant due, core::Instant time);
  void tell_of_turn_under_way(core::Instant time);
  void report(const Found& found);
  /// Not before `again`, which becomes the next time.
  void say(const std::string& what, core::Instant& again);

  boost::asio::any_io_executor reactor_;
  Notifier notifier_;
  Options options_;
  async::Turns turns_;
  Lateness lateness_;
  core::Instant may_say_turn_{};
  core::Instant may_say_standstill_{};

  // The thread's.
  Hangs hangs_;
  core::Instant stood_from_{};  // the last standstill
  core::Instant stood_until_{};
  core::Instant told_{};  // the beginning of the turn that was told of while it lasted

  std::shared_ptr<TurnWatch*> self_;  // what the thread posts looks whether this is still there
  std::jthread thread_;               // goes first
};

}  // namespace evictd::wake
