#include "agent/describe_trim.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/describe.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"

namespace evictd::agent {
namespace {

std::string_view plural(std::size_t count) { return count == 1 ? "" : "s"; }

std::string what_was_done(const TrimReport& report) {
  const auto& result = report.result;
  const auto gave = static_cast<std::size_t>(
      std::ranges::count_if(result.pods, [](const evict::TrimmedPod& pod) { return pod.bytes > 0; }));
  std::string text;
  if (gave > 0)
    text = fmt::format("trimmed {} from {} pod{} in {:.1f} s", human_bytes(result.bytes), gave, plural(gave),
                       std::chrono::duration<double>(result.duration).count());
  if (report.programs_told > 0)
    text += fmt::format("{}told {} program{} that memory is short", text.empty() ? "" : ", ", report.programs_told,
                        plural(report.programs_told));
  return text;
}

std::string what_comes_of_it(const TrimReport& report) {
  if (report.pods_go) return "and pods go all the same";
  return report.still_short ? fmt::format("still short: {}", core::to_string(report.threshold)) : "nobody evicted";
}

}  // namespace

v1::Event describe_trim(const TrimReport& report) {
  v1::Event event;
  event.set_kind(v1::Event::TRIMMED);
  event.set_signal(std::string(core::name(report.threshold.signal)));
  auto& detail = *event.mutable_trimmed();
  *detail.mutable_threshold() = describe_threshold(report.threshold, report.before.capacity);
  detail.set_available_before(report.before.available);
  if (report.after) detail.set_available_after(report.after->available);
  detail.set_freed_bytes(report.result.bytes);
  for (const auto& pod : report.result.pods) {
    auto& trimmed = *detail.add_pods();
    *trimmed.mutable_pod() = describe_pod(*pod.pod);
    trimmed.set_freed_bytes(pod.bytes);
    trimmed.set_ended_by(pod.ended_by);
  }
  detail.set_programs_told(static_cast<std::int32_t>(report.programs_told));
  *detail.mutable_duration() = to_duration(report.result.duration);
  detail.set_ended_by(std::string(name(report.result.end)));
  detail.set_still_short(report.still_short);
  event.set_message(fmt::format("{}, {}", what_was_done(report), what_comes_of_it(report)));
  return event;
}

}  // namespace evictd::agent
