#include "evict/reaper.hpp"

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fixture/captured_log.hpp"
#include "fixture/few_descriptors.hpp"
#include "fixture/patience.hpp"

namespace evictd::evict::reaper_test {
namespace {

using namespace std::chrono_literals;
using fixture::open_descriptors;

/// So many killed processes. What is released here is nobody's, so any descriptor stands for one.
std::vector<Signalled> killed(std::size_t count) {
  std::vector<Signalled> processes;
  for (std::size_t i = 0; i < count; ++i)
    processes.push_back({::getpid(), os::FileDescriptor{::eventfd(0, EFD_CLOEXEC)}});
  return processes;
}

template <class Condition>
bool comes_true(Condition condition) {
  const auto give_up = std::chrono::steady_clock::now() + test::patience;
  while (!condition() && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
  return condition();
}

/// A kernel whose first calls return only once they may.
class Kernel {
 public:
  explicit Kernel(int hanging) : state_{std::make_shared<State>()} { state_->hanging = hanging; }
  /// Waits until the threads have let go of all: the next case counts descriptors, too.
  ~Kernel() {
    let_go();
    static_cast<void>(comes_true([this] { return open_descriptors() == before_; }));
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  [[nodiscard]] Reaper::Release release() const {
    return [state = state_](int) {
      if (++state->calls <= state->hanging) state->may_return.wait(false);
      ++state->returned;
    };
  }
  void let_go() {
    state_->may_return = true;
    state_->may_return.notify_all();
  }
  [[nodiscard]] int calls() const { return state_->calls; }
  [[nodiscard]] int returned() const { return state_->returned; }

 private:
  /// Shared with threads that may be in a call still when all is taken down.
  struct State {
    int hanging = 0;
    std::atomic<int> calls = 0;
    std::atomic<int> returned = 0;
    std::atomic<bool> may_return = false;
  };
  std::shared_ptr<State> state_;
  std::ptrdiff_t before_ = open_descriptors();
};

}  // namespace

TEST_CASE("each process that is handed over is released once, and let go of") {
  const auto before = open_descriptors();
  Kernel kernel{0};
  Reaper reaper{kernel.release()};
  reaper.reap(killed(20));
  reaper.reap(killed(1));
  CHECK(comes_true([&] { return kernel.returned() == 21 && open_descriptors() == before; }));
  CHECK(kernel.calls() == 21);
}

TEST_CASE("of many processes some dozens are released, and all are let go of") {
  const auto before = open_descriptors();
  Kernel kernel{0};
  Reaper reaper{kernel.release()};
  reaper.reap(killed(100));
  CHECK(comes_true([&] { return kernel.returned() == 64 && open_descriptors() == before; }));
}

TEST_CASE("a process whose memory cannot be released keeps that of no other") {
  Kernel kernel{1};
  Reaper reaper{kernel.release()};
  reaper.reap(killed(3));
  reaper.reap(killed(3));
  CHECK(comes_true([&] { return kernel.returned() == 5; }));
}

TEST_CASE("where two hang, what is handed over is let go of and that told once, until one of them returns") {
  const fixture::CapturedLog log;
  Kernel kernel{2};
  Reaper reaper{kernel.release(), 0ms};
  reaper.reap(killed(1));
  reaper.reap(killed(1));
  REQUIRE(comes_true([&] { return kernel.calls() == 2; }));
  const auto before = open_descriptors();
  reaper.reap(killed(20));
  reaper.reap(killed(1));
  CHECK(open_descriptors() == before);
  CHECK(log.lines() == std::vector<std::string>{"the memory of two killed processes cannot be released, since a disk "
                                                "hangs or they are large; that of others comes back when they exit"});
  kernel.let_go();
  REQUIRE(comes_true([&] { return open_descriptors() == before - 2; }));
  CHECK(kernel.calls() == 2);
  CHECK(comes_true([&] {
    reaper.reap(killed(1));
    return kernel.returned() > 2;
  }));
}

TEST_CASE("nothing waits for calls that hang when the reaper goes, nor is what waited for them kept") {
  Kernel kernel{2};
  const auto before = open_descriptors();
  auto reaper = std::make_unique<Reaper>(kernel.release());
  reaper->reap(killed(5));
  REQUIRE(comes_true([&] { return kernel.calls() == 2; }));
  auto end = std::async(std::launch::async, [&] { reaper.reset(); });
  CHECK(end.wait_for(10s) == std::future_status::ready);
  CHECK(open_descriptors() == before + 2);
  kernel.let_go();
  CHECK(comes_true([&] { return open_descriptors() == before; }));
}

}  // namespace evictd::evict::reaper_test
