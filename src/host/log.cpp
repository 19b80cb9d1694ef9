#include "host/log.hpp"

#include <sys/stat.h>
#include <sys/uio.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <vector>

#include "core/printable.hpp"

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

void send_to_journal(LogLevel level, std::string_view message, LogFields fields) {
  std::vector<std::string> entries{fmt::format("MESSAGE={}", message),
                                   fmt::format("PRIORITY={}", static_cast<int>(level)), "SYSLOG_IDENTIFIER=evictd"};
  for (const auto& [name, value] : fields) entries.push_back(fmt::format("{}={}", name, core::printable(value)));
  std::vector<iovec> vectors;
  for (auto& entry : entries) vectors.push_back({entry.data(), entry.size()});
  sd_journal_sendv(vectors.data(), static_cast<int>(vectors.size()));
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
  const auto text = core::printable(message);
  if (to_journal)
    send_to_journal(level, text, fields);
  else
    write_line(text);
}

}  // namespace evictd::host
