#include "kube/stuck_names.hpp"

#include <dlfcn.h>
#include <netdb.h>

#include <condition_variable>
#include <mutex>
#include <string_view>

namespace evictd::test {
namespace {

struct Stuck {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t waiting = 0;
  bool is_stuck = false;

  void wait() {
    std::unique_lock lock{mutex};
    ++waiting;
    changed.wait(lock, [this] { return !is_stuck; });
    --waiting;
    changed.notify_all();
  }
};

Stuck& stuck() {
  static auto* const instance = new Stuck;  // whoever waits may outlive this program's static objects
  return *instance;
}

}  // namespace

StuckNames::StuckNames() {
  const std::scoped_lock lock{stuck().mutex};
  stuck().is_stuck = true;
}

StuckNames::~StuckNames() {
  std::unique_lock lock{stuck().mutex};
  stuck().is_stuck = false;
  stuck().changed.notify_all();
  stuck().changed.wait(lock, [] { return stuck().waiting == 0; });
}

std::size_t StuckNames::waiting() {
  const std::scoped_lock lock{stuck().mutex};
  return stuck().waiting;
}

}  // namespace evictd::test

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name)
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
  if (node != nullptr && std::string_view(node).ends_with(".stuck.invalid")) {
    evictd::test::stuck().wait();
    return EAI_NONAME;
  }
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto library = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return library(node, service, hints, result);
}
