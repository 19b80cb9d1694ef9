#include "os/log.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "core/printable.hpp"
#include "os/journal.hpp"
#include "os/log_queue.hpp"

namespace evictd::os {
namespace {

std::atomic<LogLevel> threshold = LogLevel::Info;

/// systemd names the device and inode it gave us as stderr; anything else was redirected since (systemd.exec(5),
/// $JOURNAL_STREAM).
bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status{};
  if (stream == nullptr || fstat(STDERR_FILENO, &status) != 0) return false;
  return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

/// Waits for the reader, also where another program has made the terminal or the pipe non-blocking. A log that cannot
/// be written stops nothing.
void write_line(std::string_view message) {
  const auto line = fmt::format("evictd: {}\n", message);
  std::string_view rest = line;
  while (!rest.empty()) {
    const auto written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd room{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
      if (::poll(&room, 1, -1) < 0 && errno != EINTR) return;
    } else if (errno != EINTR) {
      return;
    }
  }
}

void write_entry(const LogEntry& entry) {
  static const bool to_journal = stderr_is_journal();
  if (to_journal || entry.journal_only)
    write_journal_entry(entry.priority, entry.message, entry.fields);
  else
    write_line(core::printable(entry.message));
}

class Output final : public LogSink {
 public:
  void write(const LogEntry& entry) override { write_entry(entry); }
};

/// Never destroyed: the thread may be waiting for its reader when the process ends.
std::atomic<LogQueue*> background = nullptr;

void take(LogEntry entry) {
  if (auto* const queue = background.load(std::memory_order_acquire))
    queue->push(std::move(entry));
  else
    write_entry(entry);
}

std::string reason_of_termination() {
  const auto thrown = std::current_exception();
  if (!thrown) return "std::terminate was called";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return core::printable(error.what());
  } catch (...) {
    return "what was thrown is no std::exception";
  }
}

/// Not by the queue: this thread may hold its lock. A pipe or socket that is ready takes a short line at once.
[[noreturn]] void report_termination() {
  static_cast<void>(flush_log(std::chrono::milliseconds{500}));
  const auto line = fmt::format("evictd: ends, for nothing caught an exception: {}\n", reason_of_termination());
  pollfd room{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&room, 1, 500) > 0 && ::write(STDERR_FILENO, line.data(), line.size()) < 0) std::abort();
  std::abort();
}

}  // namespace

void set_log_level(LogLevel level) { threshold = level; }

void log(LogLevel level, std::string_view message, LogFields fields) {
  if (level > threshold.load(std::memory_order_relaxed)) return;
  take({.priority = static_cast<int>(level), .message = std::string(message), .fields = fields});
}

void log_to_journal(LogLevel level, std::string_view message, std::vector<JournalField> fields) {
  take({.priority = static_cast<int>(level),
        .journal_only = true,
        .message = std::string(message),
        .fields = std::move(fields)});
}

void log_in_background() {
  if (background != nullptr) return;
  std::signal(SIGPIPE, SIG_IGN);
  std::set_terminate(report_termination);
  background = new LogQueue{*new Output};
}

bool flush_log(core::Duration patience) {
  const auto* const queue = background.load(std::memory_order_acquire);
  return queue == nullptr || queue->wait_until_written(patience);
}

}  // namespace evictd::os
