#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>

#include "core/error.hpp"

namespace evictd::host {

/// That one evictd guards a node: a locked file, in which the holder says who it is.
///
/// The kernel lets go of the lock (flock(2)) when its holder ends, however it ends, so the file that a dead one left is
/// in nobody's way. It is never removed: who had opened it before would hold a lock that nobody else sees. Nobody but
/// its owner can open it, and thereby hold it.
class NodeLock {
 public:
  /// Another one has it. The message says who, since when, and what to do.
  struct Held {
    Error error;
    std::string holder;  ///< "evictd 1.2.3, pid 812, since 2026-11-30T12:00:00Z"
  };
  /// The file cannot be made or locked, or its holder was killed and the kernel cannot let go of it, since a thread of
  /// it waits for a disk that hangs: a node can be guarded without.
  struct Unusable {
    Error error;
  };
  static constexpr auto patience = std::chrono::seconds(1);

  using Taken = std::variant<NodeLock, Held, Unusable>;

  /// Takes the lock, and makes the file and its directory where they are missing. Blocks for `patience`
  /// while another one has it: on a busy machine the next evictd may be there before a killed one has let go.
  [[nodiscard]] static Taken take(const std::filesystem::path& path, const std::string& version);

  NodeLock(NodeLock&& other) noexcept : file_{std::exchange(other.file_, -1)} {}
  NodeLock& operator=(NodeLock&&) = delete;
  ~NodeLock();

 private:
  explicit NodeLock(int file) : file_{file} {}

  int file_;
};

}  // namespace evictd::host
