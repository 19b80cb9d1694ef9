#pragma once
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "events/event_log.hpp"
#include "events/number_file.hpp"
#include "events/segment_writer.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::events {

/// The thread of an EventStore: reserves numbers and writes events, in this order. All but `run` is called on the
/// reactor's thread, and none of it waits but `finish`.
///
/// A thread that hangs cannot say so: whoever brings it more work looks how long it has been at the last.
class StoreWriter : public std::enable_shared_from_this<StoreWriter> {
 public:
  struct Parts {
    boost::asio::any_io_executor reactor;
    os::FileDescriptor lock;  ///< of the directory; until the thread has ended
    NumberFile numbers;
    SegmentWriter segments;
    std::uint64_t reserved = 0;
    /// How long the thread may be at one piece of work before the disk counts as one that does not answer.
    std::chrono::milliseconds patience{5000};
  };

  /// What may wait to be written: some 10 MiB of evictions at most, and nearly a second of 10,000 events each second.
  static constexpr std::size_t queue_limit = 8192;

  explicit StoreWriter(Parts parts) : parts_(std::move(parts)), wanted_(parts_.reserved), reserved_(parts_.reserved) {}

  void start();
  /// `reserve`: numbers up to here are wanted; less than before changes nothing.
  void take(std::vector<EventPtr> events, std::uint64_t reserve);
  /// The log is given the numbers that are reserved, on the reactor; all there are where that cannot be written down,
  /// for evictd goes on without. It may only be destroyed while its reactor does not run any more.
  void reserve_for(EventLog& log) { log_ = &log; }
  /// The log is not touched any more.
  void forget_log() { log_ = nullptr; }
  /// Nothing comes any more; `last` was the last number. False: the disk has not taken it within 5 s, and the thread is
  /// left to itself.
  [[nodiscard]] bool finish(std::uint64_t last);

  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void reserve(std::uint64_t end);
  void write(const std::vector<EventPtr>& events);
  void sync();
  void tell_lost(const std::string& error);
  void tell_reserved(std::uint64_t end);
  void complain(const std::string& error);
  [[nodiscard]] std::uint64_t lost_since_complaint();

  void look();
  void look_later(Clock::time_point time);
  void tell_hanging(Clock::time_point since, std::size_t waiting);

  Parts parts_;  // of the thread, once it runs
  Clock::time_point sync_due_{};
  Clock::time_point retry_reserving_{};
  std::optional<Clock::time_point> complained_{};
  std::string untold_error_;  // why events were lost since then; empty: too many came at once

  // Of the reactor.
  EventLog* log_ = nullptr;
  std::optional<boost::asio::steady_timer> next_look_;  // as long as one is due
  std::optional<Clock::time_point> hanging_since_;      // what was told last
  std::optional<Clock::time_point> hanging_told_;

  std::atomic<std::uint64_t> lost_ = 0;
  std::atomic<std::uint64_t> lost_when_complained_ = 0;

  std::mutex mutex_;  // for all that follows
  std::condition_variable wake_;
  std::condition_variable finished_signal_;
  std::vector<EventPtr> queue_;
  std::optional<Clock::time_point> working_since_;  // on what it took last; absent: it waits for more
  std::uint64_t wanted_;
  Clock::time_point wanted_since_{};  // numbers beyond reserved_, or since some of them were reserved last
  std::uint64_t reserved_;            // of which the reactor may have yet to hear
  std::uint64_t last_ = 0;
  bool finishing_ = false;
  bool finished_ = false;
  bool abandoned_ = false;  // the reactor may be gone
};

}  // namespace evictd::events
