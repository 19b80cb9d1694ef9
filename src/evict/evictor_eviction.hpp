#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "evict/container_stop.hpp"
#include "evict/evictor.hpp"
#include "evict/pod_stopper.hpp"
#include "evict/progress.hpp"
#include "evict/runtime_look.hpp"
#include "evict/sandbox_cgroup.hpp"
#include "os/now.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

/// An eviction that is under way: for the evictor's own files.
struct Evictor::Eviction {
  pods::RuntimePodPtr pod;
  core::Duration grace_period;
  Afterwards afterwards;
  Report report;
  core::Instant begin = os::now();
  std::int64_t held_before = 0;               // bytes of memory
  std::optional<SandboxCgroup> sandbox{};     // left alone by direct kills
  bool sandbox_too = false;                   // it is not any more
  std::vector<std::string> sandbox_ids{};     // as the runtime knows them
  bool too_many = false;                      // processes or cgroups, to be killed in a turn of the reactor
  std::optional<core::Instant> struck{};      // when its containers were killed without the runtime, at its beginning
  std::optional<ContainerStop> containers{};  // unless the pod is gone
  bool runs_hooks = true;                     // of its containers
  bool sandbox_left = false;                  // killed without StopPodSandbox having been carried out
  bool stopped = false;                       // all that can be done to it was done
  bool killed = false;                        // reported
  bool released = false;                      // its memory
  bool without_processes = false;             // as far as can be told
  bool gone = false;                          // reported: at most its cgroup and its volumes are left
  std::move_only_function<void()> let_go{};   // of a pod that is held until the runtime has killed it
  std::string kill_error{};
  std::string removal_error{};
};

/// A listed pod's is known; of another those that the runtime has by its uid.
[[nodiscard]] std::vector<std::string> sandboxes_of(const pods::RuntimePod& pod, const RuntimeView& view);

}  // namespace evictd::evict
