#pragma once
#include <functional>

namespace bench {

/// Runs `work` in a process of its own and returns its exit code. However that process ends, by SIGINT, SIGTERM or
/// SIGHUP to either of the two as well, nothing of its testbeds remains: containerd, pods, cgroups and directories are
/// removed. To be called before anything starts a thread. 128 + N after signal N.
[[nodiscard]] int supervise(const std::function<int()>& work);

}  // namespace bench
