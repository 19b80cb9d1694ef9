#pragma once
#include "os/file_descriptor.hpp"

namespace testbed {

/// evictd goes by whether a kubelet runs on the machine, which suites that run side by side share: beside another
/// test's it would leave cgroups to be removed by that. So who starts what looks like a kubelet has a turn, and
/// evictds that have to do with none wait for its end, as the turn does for theirs.
class KubeletTurn {
 public:
  KubeletTurn();
  KubeletTurn(const KubeletTurn&) = delete;
  KubeletTurn& operator=(const KubeletTurn&) = delete;
  ~KubeletTurn();

 private:
  evictd::os::FileDescriptor lock_;
};

/// No other test has a turn while this is there. What this process has itself does not count.
[[nodiscard]] evictd::os::FileDescriptor wait_for_no_kubelet();

}  // namespace testbed
