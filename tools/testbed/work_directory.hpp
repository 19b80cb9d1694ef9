#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "testbed/process.hpp"

namespace testbed {

/// A directory of the testbed's own in the system's temporary directory. With it end the processes that were started
/// for it, shims with their containers, and the mounts below it.
class WorkDirectory {
 public:
  WorkDirectory();
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;
  ~WorkDirectory();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Starts a program that works in the directory and is marked as belonging to it: if the test is killed, the next one
  /// ends it.
  [[nodiscard]] Process spawn(const std::vector<std::string>& command, Process::Options options = {}) const;

 private:
  std::filesystem::path path_;
};

/// What the destructor does, for any such directory.
void remove_work_directory(const std::filesystem::path& directory);

}  // namespace testbed
