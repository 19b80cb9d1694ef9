#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/pod.hpp"
#include "evict/kill_hooks.hpp"
#include "os/now.hpp"

namespace evictd::test {

/// A pod named "web" is about to be killed.
inline evict::KillIntent intent(std::chrono::milliseconds time, std::string cgroup = "/kubepods/pod1",
                                std::uint64_t id = 7) {
  core::Pod pod;
  pod.name_space = "default";
  pod.name = "web";
  pod.uid = "u1";
  return {.pod = std::make_shared<const core::Pod>(std::move(pod)),
          .cgroup = std::move(cgroup),
          .id = id,
          .message = "memory is short",
          .until = os::now() + time};
}

}  // namespace evictd::test
