#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/duration.hpp"
#include "os/journal.hpp"

namespace evictd::os {

/// A line of the log while it waits to be written.
struct LogEntry {
  int priority = 6;           ///< as syslog numbers them
  bool journal_only = false;  ///< an entry for journald, and none for a terminal
  std::string message{};
  std::vector<JournalField> fields{};
};

/// Where lines of the log end.
class LogSink {
 public:
  LogSink() = default;
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;
  virtual ~LogSink() = default;

  /// One entry at a time. It may block for ever.
  virtual void write(const LogEntry& entry) = 0;
};

/// Lines on their way to a reader who may be slow, or gone. A thread writes them in order; nothing else waits for the
/// reader. What does not fit is dropped and counted, and the count takes its place in the log.
class LogQueue {
 public:
  struct Limits {
    std::size_t lines = 2048;                  ///< an eviction is six; a journald that restarts is away for a second
    std::size_t bytes = std::size_t{1} << 18;  ///< of messages and fields
  };

  /// `sink` is written to by the thread, and outlives this.
  explicit LogQueue(LogSink& sink) : LogQueue{sink, Limits{}} {}
  LogQueue(LogSink& sink, Limits limits);
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;
  /// Waits for the entry that is being written; the others are lost (wait_until_written() comes before).
  ~LogQueue();

  /// From any thread. Never waits for a reader.
  void push(LogEntry entry);

  /// Whether all that was pushed is written, after waiting for it for at most that long. From any thread; takes no
  /// lock, for a thread that ends in std::terminate may hold it.
  [[nodiscard]] bool wait_until_written(core::Duration patience) const;

 private:
  void run(const std::stop_token& stop);
  [[nodiscard]] bool has_room_for(const LogEntry& entry);
  void add(LogEntry entry);
  void add_dropped();

  LogSink& sink_;
  Limits limits_;
  std::mutex mutex_;
  std::condition_variable_any change_;
  std::deque<LogEntry> entries_;
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;             // since the last entry that was taken
  std::atomic<std::size_t> pending_ = 0;  // waiting, or being written
  std::jthread thread_;                   // goes first
};

}  // namespace evictd::os
