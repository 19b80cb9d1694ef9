#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/pod.hpp"
#include "evict/kill_hooks.hpp"
#include "os/now.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::test {

/// A pod named "web" is about to be killed.
inline evict::KillIntent intent(std::chrono::milliseconds time, std::string cgroup = "/kubepods/pod1",
                                std::uint64_t id = 7) {
  core::Pod pod;
  pod.name_space = "default";
  pod.name = "web";
  pod.uid = "u1";
  pods::RuntimePod runs;
  runs.pod = std::make_shared<const core::Pod>(std::move(pod));
  runs.cgroup = std::move(cgroup);
  evict::KillIntent intent;
  intent.pod = std::make_shared<const pods::RuntimePod>(std::move(runs));
  intent.id = id;
  intent.message = "memory is short";
  intent.until = os::now() + time;
  return intent;
}

}  // namespace evictd::test
