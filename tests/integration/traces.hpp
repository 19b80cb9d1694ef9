#pragma once
#include <filesystem>
#include <set>
#include <string>

#include "testbed/testbed.hpp"

namespace integration {

/// By what a testbed would be seen on the machine. It looks for itself, by other ways than the testbed's own clean-up.
class Traces {
 public:
  /// Of a testbed that stands, with its pods.
  explicit Traces(testbed::Testbed& bed) : Traces(bed.directory(), bed.node().cgroup()) {}
  Traces(std::filesystem::path directory, std::string cgroup);

  /// What is still there, each with its kind: "process 12", "cgroup /sys/…", "mount …", "directory …", "socket …".
  [[nodiscard]] std::set<std::string> found() const;

 private:
  std::filesystem::path directory_;
  std::string cgroup_;
  std::set<std::string> shim_sockets_;
};

}  // namespace integration
