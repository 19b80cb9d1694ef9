#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/eviction_settings.hpp"
#include "core/threshold_overlay.hpp"

namespace evictd::config {

/// A file of thresholds.dropIns: a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) of which only evictionHard,
/// evictionSoft, evictionSoftGracePeriod and evictionMinimumReclaim may be there. Its entries come on top of those
/// below, signal by signal; `null` takes one away.
struct ThresholdDropIn {
  std::string name;  ///< of the file, without its directory
  core::ThresholdOverlay overlay;

  friend bool operator==(const ThresholdDropIn&, const ThresholdDropIn&) = default;
};

/// Each value is judged by itself, so that an error names its line; whether all layers fit together is for
/// core::make_policy. An unknown key is an error.
[[nodiscard]] Result<core::ThresholdOverlay> parse_threshold_drop_in(std::string_view text, std::string_view origin);

/// All "*.yaml" and "*.yml" of the directory in the order of their names, but for hidden ones. A directory that is not
/// there holds none.
[[nodiscard]] Result<std::vector<ThresholdDropIn>> load_threshold_drop_ins(const std::filesystem::path& directory);

/// A document that parse_threshold_drop_in reads back as the same overlay.
[[nodiscard]] std::string print_threshold_drop_in(const core::ThresholdOverlay& overlay);

/// The eviction thresholds of the settings as a document that parse_kubelet_configuration reads back, to the same
/// policy.
[[nodiscard]] std::string print_thresholds(const core::EvictionSettings& settings);

}  // namespace evictd::config
