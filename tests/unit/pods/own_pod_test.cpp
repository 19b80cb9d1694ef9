#include "pods/own_pod.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

namespace evictd::pods::own_pod_test {

TEST_CASE("the pod of a process is in its cgroup, whichever driver and version made it") {
  CHECK(pod_of_process("4:memory:/kubepods/burstable/pod1234-56/abc\n0::/\n") == "1234-56");
  CHECK(pod_of_process("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice/cri-x.scope\n") ==
        "12-34");
  CHECK(pod_of_process("0::/system.slice/evictd.service\n").empty());
  CHECK(pod_of_process("0::/\n").empty());
  CHECK(pod_of_process("").empty());
}

TEST_CASE("whoever made the pod may say its uid") {
  ::setenv("POD_UID", "abc-1", 1);
  CHECK(own_pod_uid() == "abc-1");
  ::setenv("POD_UID", "", 1);
  CHECK(own_pod_uid().empty());  // the tests run in no pod
  ::unsetenv("POD_UID");
}

}  // namespace evictd::pods::own_pod_test
