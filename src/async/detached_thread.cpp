#include "async/detached_thread.hpp"

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace evictd::async {
namespace {

/// As long as this lives, new threads take no signal.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

void detach_thread(const std::string& name, std::move_only_function<void()> work) {
  const NoSignals none;
  std::thread thread{std::move(work)};
  pthread_setname_np(thread.native_handle(), name.c_str());
  thread.detach();
}

}  // namespace evictd::async
