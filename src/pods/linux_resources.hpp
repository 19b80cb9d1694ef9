#pragma once
#include <api.pb.h>

#include "pods/verbose_status.hpp"

namespace evictd::pods {

/// As the CRI gives them.
[[nodiscard]] inline LinuxResources linux_resources(const ::runtime::v1::LinuxContainerResources& given) {
  return {.memory_limit = given.memory_limit_in_bytes(),
          .oom_score_adj = given.oom_score_adj(),
          .cpu_shares = given.cpu_shares(),
          .cpu_quota = given.cpu_quota(),
          .cpu_period = given.cpu_period()};
}

}  // namespace evictd::pods
