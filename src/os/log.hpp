#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "os/journal.hpp"

namespace evictd::os {

/// As syslog numbers them.
enum class LogLevel : std::uint8_t { Error = 3, Warning = 4, Info = 6, Debug = 7 };

/// Structured fields beside the message, for journald: upper-case names such as EVICTD_POD.
using LogFields = std::initializer_list<JournalField>;

/// Where lines go is found out once, at the first one: to journald with their fields when stderr is a journal stream
/// (systemd set JOURNAL_STREAM), else to stderr as "evictd: message". Control bytes in messages are escaped: names in
/// them come from others. Thread-safe. Each line is one write, which waits for the log's reader until
/// log_in_background() was called, and never afterwards.
void set_log_level(LogLevel level);
void log(LogLevel level, std::string_view message, LogFields fields = {});

/// An entry for journald, wherever the log goes; where there is no journald, nothing. Otherwise as log().
void log_to_journal(LogLevel level, std::string_view message, std::vector<JournalField> fields);

/// For a service, at its start: from now on lines wait in a bounded queue (os/log_queue.hpp) for a thread of their
/// own. A reader that leaves ends the log and nothing else: SIGPIPE is ignored. An exception that nothing catches, on
/// any thread, is a line on stderr before it ends the process (SIGABRT), which waits for the reader for a second.
/// Commands that only answer a question do without, and end by SIGPIPE as other programs in a pipe do.
void log_in_background();

/// Whether all lines are written, after waiting for that for at most so long: for the end of the process.
bool flush_log(core::Duration patience);

template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::Error, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::Warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log(LogLevel::Info, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace evictd::os
