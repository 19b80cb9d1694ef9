#include "config/kubelet_configuration.hpp"

#include <vector>

#include "config/threshold_drop_in.hpp"
#include "core/eviction_settings.hpp"
#include "target.hpp"

// The kubelet's configuration, and files of thresholds, which are documents of the same kind.

namespace evictd::fuzz {
namespace {

constexpr std::string_view origin = "kubelet.yaml";

/// All of them but the one of the pods' cgroup, which another setting asks for.
std::vector<core::Threshold> thresholds_of(const core::EvictionSettings& settings) {
  auto thresholds = value_of(core::make_policy(settings)).thresholds;
  std::erase_if(thresholds, [](const core::Threshold& threshold) {
    return threshold.source == core::ThresholdSource::EnforceNodeAllocatable;
  });
  // Those that nobody wrote are written down now.
  for (auto& threshold : thresholds)
    if (threshold.source == core::ThresholdSource::Default) threshold.source = core::ThresholdSource::EvictionHard;
  return thresholds;
}

void check_thresholds(const core::EvictionSettings& settings) {
  const auto again = value_of(config::parse_kubelet_configuration(config::print_thresholds(settings), origin));
  check(thresholds_of(again.eviction) == thresholds_of(settings), "thresholds printed and read again are the same");
}

void check_drop_in(std::string_view input) {
  const auto overlay = config::parse_threshold_drop_in(input, origin);
  if (!is_good(overlay)) return;
  check(value_of(config::parse_threshold_drop_in(config::print_threshold_drop_in(*overlay), origin)) == *overlay,
        "a file of thresholds printed and read again is the same");
}

}  // namespace

void run(std::string_view input) {
  if (const auto configuration = config::parse_kubelet_configuration(input, origin); is_good(configuration))
    check_thresholds(configuration->eviction);
  check_drop_in(input);
  // Without the header, which few mutations keep.
  const auto document = config::parse_yaml(input, origin);
  if (!is_good(document) || document->is_null()) return;
  if (const auto configuration = config::read_kubelet_configuration(*document); is_good(configuration))
    check_thresholds(configuration->eviction);
}

}  // namespace evictd::fuzz
