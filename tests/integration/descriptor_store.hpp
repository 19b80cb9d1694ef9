#pragma once
#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "os/file_descriptor.hpp"

namespace integration {

/// systemd, as far as it keeps descriptors for a service that restarts (sd_pid_notify_with_fds(3)). It reads at once
/// what it is told: who notifies waits for it when the socket's queue is full.
class DescriptorStore {
 public:
  /// Listens on a socket of this name.
  explicit DescriptorStore(std::filesystem::path path);
  DescriptorStore(const DescriptorStore&) = delete;
  DescriptorStore& operator=(const DescriptorStore&) = delete;
  ~DescriptorStore();

  /// For the environment of the service: "NOTIFY_SOCKET=…".
  [[nodiscard]] std::string variable() const { return "NOTIFY_SOCKET=" + path_.native(); }
  /// The number of what evictd has given and not taken back; nothing: there is none.
  [[nodiscard]] std::optional<int> stored() const;

 private:
  void listen();
  void hear();

  std::filesystem::path path_;
  evictd::os::FileDescriptor socket_;
  mutable std::mutex mutex_;
  std::optional<evictd::os::FileDescriptor> stored_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace integration
