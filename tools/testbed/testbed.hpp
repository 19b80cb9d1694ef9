#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "testbed/containerd.hpp"
#include "testbed/cri.hpp"
#include "testbed/node_cgroup.hpp"
#include "testbed/process.hpp"

namespace testbed {

/// A node to test on: a cgroup that stands for it, a containerd, and CRI to run pods with. What an earlier, killed
/// testbed left is removed first; when this object goes, nothing of it remains.
class Testbed {
 public:
  struct Options {
    NodeCgroup::Options node{};
    Containerd::Options containerd{};
    bool start_containerd = true;
  };

  Testbed() : Testbed(Options{}) {}
  explicit Testbed(const Options& options);

  [[nodiscard]] NodeCgroup& node() { return node_; }
  [[nodiscard]] Containerd& containerd() { return containerd_; }
  [[nodiscard]] Cri& cri() { return cri_; }
  /// Where a test may put its files: they go with the testbed.
  [[nodiscard]] const std::filesystem::path& directory() const { return containerd_.directory(); }

  /// Starts a program that belongs to this testbed: if the test is killed, the next one ends it.
  [[nodiscard]] Process spawn(const std::vector<std::string>& command, const Process::Options& options = {}) const {
    return containerd_.spawn(command, options);
  }

 private:
  NodeCgroup node_;  // outlives the pods, which end with containerd
  Containerd containerd_;
  Cri cri_;
};

/// What a testbed needs and this machine lacks: root, the cgroup controllers, a program. Nothing when all is there.
[[nodiscard]] std::optional<std::string> missing_prerequisite();

}  // namespace testbed
