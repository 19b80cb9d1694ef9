#include "evictctl/threshold_arguments.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include "core/duration.hpp"

namespace evictd::ctl {
namespace {

using google::protobuf::util::TimeUtil;

Result<std::optional<core::Duration>> read_grace(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto grace = core::parse_duration(text);
  if (!grace) return fail(grace.error(), "--grace");
  if (*grace <= core::Duration::zero()) return fail(fmt::format("--grace: \"{}\" must be more than nothing", text));
  return *grace;
}

}  // namespace

Result<std::vector<v1::ThresholdChange>> threshold_changes(const ThresholdArguments& arguments) {
  const auto grace = read_grace(arguments.grace);
  if (!grace) return std::unexpected(grace.error());
  if (*grace && !arguments.soft) return fail("--grace: only a soft threshold has a grace period: say --soft");
  std::vector<v1::ThresholdChange> changes;
  for (const auto& assignment : arguments.assignments) {
    const auto sign = assignment.find('=');
    if (sign == std::string::npos || sign == 0)
      return fail(fmt::format("\"{}\" is not SIGNAL=VALUE, such as memory.available=500Mi", assignment));
    auto& change = changes.emplace_back();
    change.set_signal(assignment.substr(0, sign));
    change.set_value(assignment.substr(sign + 1));
    change.set_soft(arguments.soft);
    if (*grace) *change.mutable_grace_period() = TimeUtil::NanosecondsToDuration((*grace)->count());
    if (arguments.minimum_reclaim) change.set_minimum_reclaim(*arguments.minimum_reclaim);
  }
  return changes;
}

}  // namespace evictd::ctl
