#pragma once
#include <boost/json/fwd.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace evictd::kubelet {

/// What a kubelet is told on its command line (kubelet 1.36: cmd/kubelet/app/options).
struct Flags {
  std::optional<std::string> config{};          ///< --config
  std::optional<std::string> drop_ins{};        ///< --config-dir
  std::optional<std::string> arguments_file{};  ///< --kubelet-args-file, MicroK8s' own
  /// The flags that evictd goes by, as the fields of a KubeletConfiguration that they stand for; null where there are
  /// none. What is written more than once adds up, as the kubelet has it.
  std::shared_ptr<const boost::json::value> fields{};
};

/// "--name=value" or "--name value". What is malformed, which no kubelet starts with, is passed over.
[[nodiscard]] Flags parse_flags(std::span<const std::string> arguments);

}  // namespace evictd::kubelet
