#include "evictctl/interruption.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace evictd::ctl {
namespace {

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

Interruption::BlockedSignals::BlockedSignals() {
  const sigset_t set = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &previous_);
  signal_fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

Interruption::BlockedSignals::~BlockedSignals() {
  // What was taken notice of must not end the process now.
  for (signalfd_siginfo taken{}; ::read(signal_fd_, &taken, sizeof taken) > 0;) {
  }
  ::close(signal_fd_);
  ::pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

Interruption::Interruption(const BlockedSignals& signals, grpc::ClientContext& call,
                           std::chrono::milliseconds answer_within)
    : call_(call),
      event_fd_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this, fd = signals.signal_fd_, answer_within] { watch(fd, answer_within); }) {}

Interruption::~Interruption() {
  over_ = true;
  answered();
  thread_.join();
  ::close(event_fd_);
}

void Interruption::answered() { ::eventfd_write(event_fd_, 1); }

void Interruption::watch(int signal_fd, std::chrono::milliseconds answer_within) {
  std::array<pollfd, 2> fds{
      {{.fd = signal_fd, .events = POLLIN, .revents = 0}, {.fd = event_fd_, .events = POLLIN, .revents = 0}}};
  int timeout = static_cast<int>(answer_within.count());
  while (!over_) {
    const int ready = ::poll(fds.data(), fds.size(), timeout);
    if (ready < 0) continue;  // EINTR
    if (ready > 0 && (fds[0].revents & POLLIN) == 0) {
      eventfd_t ignored = 0;
      ::eventfd_read(event_fd_, &ignored);
      timeout = -1;
      continue;
    }
    cause_ = ready == 0 ? Cause::NoAnswer : Cause::Signal;
    call_.TryCancel();
    return;
  }
}

}  // namespace evictd::ctl
