#pragma once
#include "agent/kernel_oom.hpp"

namespace evictd::v1 {
class Event;
}

namespace evictd::agent {

/// A kill by the kernel as the event KERNEL_OOM.
[[nodiscard]] v1::Event describe_kernel_oom(const KernelKill& kill);

}  // namespace evictd::agent
