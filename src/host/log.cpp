#include "host/log.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "core/printable.hpp"
#include "host/journal.hpp"

namespace evictd::host {
namespace {

std::atomic<LogLevel> threshold = LogLevel::Info;

/// systemd names the device and inode it gave us as stderr; anything else was redirected since (systemd.exec(5),
/// $JOURNAL_STREAM).
bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || fstat(STDERR_FILENO, &status) != 0) return false;
  return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

void write_line(std::string_view message) {
  const auto line = fmt::format("evictd: {}\n", message);
  // A log that cannot be written must not stop an eviction.
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace

void set_log_level(LogLevel level) { threshold = level; }

void log(LogLevel level, std::string_view message, LogFields fields) {
  static const bool to_journal = stderr_is_journal();
  if (level > threshold.load(std::memory_order_relaxed)) return;
  if (to_journal)
    write_journal_entry(static_cast<int>(level), message, fields);
  else
    write_line(core::printable(message));
}

}  // namespace evictd::host
