#pragma once
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/file_descriptor.hpp"

namespace testbed {

/// A program that was started, and ends with this object at the latest.
class Process {
 public:
  struct Options {
    std::vector<std::string> environment{};     ///< "NAME=value": beside our own, and before it
    std::filesystem::path working_directory{};  ///< empty: ours
    std::filesystem::path output{};             ///< where stdout is appended; empty: kept in memory
    std::filesystem::path errors{};             ///< likewise for stderr; may be the same file
  };

  /// `command` is looked up in PATH.
  explicit Process(const std::vector<std::string>& command) : Process(command, Options{}) {}
  Process(const std::vector<std::string>& command, const Options& options);
  Process(Process&&) = default;
  Process& operator=(Process&&) = delete;
  /// Kills with SIGKILL and reaps.
  ~Process();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running() { return !wait(std::chrono::milliseconds{0}).has_value(); }
  /// Does nothing to a process that ended.
  void signal(int number);
  /// The exit code, as a shell counts: 128 + N when signal N ended it. Nothing while it still runs at the deadline.
  std::optional<int> wait(std::chrono::milliseconds deadline);
  /// Kills with SIGKILL, and waits for the end.
  void kill();

  /// What it has written so far.
  [[nodiscard]] std::string output() const;
  [[nodiscard]] std::string errors() const;
  /// Waits until its errors have the text: evictd's log is written by a thread for which nothing else waits. Fails,
  /// quoting them, after a minute.
  void wait_until_says(std::string_view text) const;

 private:
  evictd::os::FileDescriptor output_;
  evictd::os::FileDescriptor errors_;
  evictd::os::FileDescriptor pidfd_;
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

/// Runs a command to its end and returns its stdout. Fails, quoting its stderr, when it exits with anything but 0 or
/// outlasts the deadline.
std::string run(const std::vector<std::string>& command, std::chrono::milliseconds deadline = std::chrono::minutes{1});

}  // namespace testbed
