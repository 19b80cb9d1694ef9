#pragma once
#include <functional>
#include <stop_token>

namespace testbed {

/// Runs `work` in a process of its own and returns its exit code; what it throws is printed, and the code is 1. However
/// that process ends, by SIGINT, SIGTERM or SIGHUP to either of the two as well, nothing of its testbeds remains:
/// containerd, pods, cgroups and directories are removed. To be called before anything starts a thread. 128 + N after
/// signal N.
[[nodiscard]] int supervise(const std::function<int()>& work);

/// The same for work that ends well before its time when it is asked to, which the first of these signals does; the
/// second one is as above. What the work starts is not of the terminal's foreground, whose Ctrl-C goes to all of it.
[[nodiscard]] int supervise_until_asked(const std::function<int(const std::stop_token&)>& work);

}  // namespace testbed
