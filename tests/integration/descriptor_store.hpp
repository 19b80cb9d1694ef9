#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "testbed/descriptor.hpp"

namespace integration {

/// systemd, as far as it keeps descriptors for a service that restarts (sd_pid_notify_with_fds(3)).
class DescriptorStore {
 public:
  /// Listens on a socket of this name.
  explicit DescriptorStore(std::filesystem::path path);

  /// For the environment of the service: "NOTIFY_SOCKET=…".
  [[nodiscard]] std::string variable() const { return "NOTIFY_SOCKET=" + path_.native(); }
  /// What evictd has given and not taken back so far.
  [[nodiscard]] const std::optional<testbed::Descriptor>& stored();

 private:
  std::filesystem::path path_;
  testbed::Descriptor socket_;
  std::optional<testbed::Descriptor> stored_;
};

}  // namespace integration
