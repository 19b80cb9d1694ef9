#pragma once
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/printable.hpp"

namespace evictd::ctl {

using TimePoint = std::chrono::system_clock::time_point;

using core::printable;  // names of pods and messages of others are shown this way

/// How many columns the text takes, one a character. The text is UTF-8.
[[nodiscard]] std::size_t columns(std::string_view text);

/// At most `width` columns; what is cut off is marked by "…".
[[nodiscard]] std::string shortened(std::string_view text, std::size_t width);

/// Lines of at most `width` (> 0) columns, broken at blanks where possible. At least one line.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// "-" for nothing.
[[nodiscard]] std::string or_dash(const std::string& text);

/// With three digits and a binary suffix: "512", "1.46Gi", "92.3Mi".
[[nodiscard]] std::string bytes_text(std::int64_t bytes);
/// With three digits and a suffix for a thousand, a million, …: "733", "5.2k", "1.46M".
[[nodiscard]] std::string count_text(double count);
/// Whether the unit of a signal (evictd.v1.Threshold.unit) is of things that are counted, and not bytes.
[[nodiscard]] bool is_counted(std::string_view unit);
/// An amount in the unit of a signal: bytes, or a plain number of what is counted.
[[nodiscard]] std::string amount_text(std::string_view unit, std::int64_t amount);

[[nodiscard]] std::chrono::nanoseconds to_nanoseconds(const google::protobuf::Duration& duration);

/// The two leading units, rounded down: "2d3h", "1h5m", "2m10s", "12s", "350ms". Negative ones are "0s".
[[nodiscard]] std::string duration_text(std::chrono::nanoseconds duration);
/// With three digits, for what may be short: "85us", "1.46ms", "54.1ms", "2.31s".
[[nodiscard]] std::string latency_text(std::chrono::microseconds time);

[[nodiscard]] TimePoint to_time_point(const google::protobuf::Timestamp& time);
/// The local day, "2026-11-21".
[[nodiscard]] std::string day_text(TimePoint time);
/// The local time of day, "10:31:07.123".
[[nodiscard]] std::string time_text(TimePoint time);

}  // namespace evictd::ctl
