#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "host/journal.hpp"

namespace evictd::host {

/// As syslog numbers them.
enum class LogLevel : std::uint8_t { Error = 3, Warning = 4, Info = 6, Debug = 7 };

/// Structured fields beside the message, for journald: upper-case names such as EVICTD_POD.
using LogFields = std::initializer_list<JournalField>;

/// Where lines go is found out once, at the first one: to journald with their fields when stderr is a journal stream
/// (systemd set JOURNAL_STREAM), else to stderr as "evictd: message". Control bytes in messages are escaped: names in
/// them come from others. Thread-safe; each line is one write, which waits where nobody reads the terminal or the pipe.
void set_log_level(LogLevel level);
void log(LogLevel level, std::string_view message, LogFields fields = {});

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

}  // namespace evictd::host
