#include "testbed/kubelet_turn.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <string_view>

#include "testbed/failure.hpp"
#include "testbed/wait.hpp"

namespace testbed {
namespace {

using namespace std::chrono_literals;
using evictd::os::FileDescriptor;

constexpr auto lock_file = "/tmp/evictd-tests.kubelet";

int own_turns = 0;  // of this process; tests run on one thread

FileDescriptor lock(int kind, std::string_view what) {
  FileDescriptor file{::open(lock_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (!file) fail_errno(lock_file);
  wait_until(what, 15min, [&] { return ::flock(file.get(), kind | LOCK_NB) == 0; });
  return file;
}

}  // namespace

KubeletTurn::KubeletTurn() : lock_{lock(LOCK_EX, "no other test has a kubelet or an evictd that may see this one's")} {
  ++own_turns;
}

KubeletTurn::~KubeletTurn() { --own_turns; }

FileDescriptor wait_for_no_kubelet() {
  if (own_turns > 0) return {};
  return lock(LOCK_SH, "no other test has a kubelet");
}

}  // namespace testbed
