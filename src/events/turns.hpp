#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace evictd::events {

/// Lets a thousand have a turn at the reactor, and a wake-up wait for none of them.
///
/// Turns are taken one after the other for a slice of time; whatever else is ready comes before the next slice, so it
/// waits for one slice at most. While there is no end of them, the reactor rests for as long as it worked, where many
/// wait for twice as long: a thread that sleeps now and then is run at once when it is woken, however busy the machine
/// is.
///
/// On the reactor. Shared with posted handlers.
class Turns : public std::enable_shared_from_this<Turns> {
 public:
  /// Who takes turns. May go away at any time, also within its own turn.
  struct Taker {
    std::function<void()> take;  ///< a little work, some 50 µs; what is left of it is for another turn
    bool queued = false;         ///< the rest is for Turns alone
    bool waiting = false;
  };

  /// What a coroutine waits for beside its turn. It may be rung before anybody waits, more than once, and when nobody
  /// waits any more.
  class Bell {
   public:
    void ring();

   private:
    friend class Turns;
    std::weak_ptr<Turns> turns_;
    std::weak_ptr<Taker> taker_;
    bool rung_ = false;
  };

  /// A write to a subscriber costs 10 to 30 µs: some of them, and far less than deciding takes.
  static constexpr std::chrono::microseconds usual_slice{200};

  explicit Turns(boost::asio::any_io_executor reactor, std::chrono::microseconds slice = usual_slice);

  /// Asks for a turn after the current handler. Once queued, asking again changes nothing.
  void queue(const std::shared_ptr<Taker>& taker);
  /// Asks for a turn after the next `announce`.
  void wait(const std::shared_ptr<Taker>& taker);
  /// Queues all that wait, once the current handler is over.
  void announce();

  /// As `queue`, for a coroutine of the reactor: it goes on within its turn. False: no turns are given any more.
  [[nodiscard]] boost::asio::awaitable<bool> turn();
  /// The same once the bell has rung. One coroutine waits for a bell, once.
  [[nodiscard]] boost::asio::awaitable<bool> turn(std::shared_ptr<Bell> bell);

  /// A taker that may have waited has gone. Without this, those that come and go on a quiet node would pile up.
  void forget_one();
  /// No turns are given any more. Coroutines that wait for one go on at once, within this.
  void stop();

  /// Those that wait or have gone and were not swept up yet.
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

 private:
  void run();
  void post_run();
  void rest(std::chrono::steady_clock::duration time);
  void queue_waiting();

  using Handler = std::move_only_function<void(bool)>;
  struct Waiting {
    std::shared_ptr<Taker> taker;
    Handler handler;
  };
  std::shared_ptr<Taker> add_coroutine(Handler handler);
  void queue_once_rung(Bell& bell, const std::shared_ptr<Taker>& taker);

  boost::asio::any_io_executor reactor_;
  boost::asio::steady_timer rest_timer_;
  std::chrono::microseconds slice_;
  std::deque<std::weak_ptr<Taker>> queue_;
  std::vector<std::weak_ptr<Taker>> waiting_;
  std::unordered_map<const Taker*, Waiting> coroutines_;  // that wait for their turn
  bool stopped_ = false;
  std::size_t gone_ = 0;    // of those that wait, at most
  bool announced_ = false;  // since the last slice began
  bool scheduled_ = false;  // a slice will come
};

}  // namespace evictd::events
