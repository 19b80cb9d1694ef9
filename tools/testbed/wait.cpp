#include "testbed/wait.hpp"

#include <fmt/format.h>

#include <thread>

#include "testbed/failure.hpp"

namespace testbed {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

bool comes_true(std::chrono::milliseconds deadline, const std::function<bool()>& condition) {
  const auto end = Clock::now() + deadline;
  while (!condition()) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(3ms);
  }
  return true;
}

std::chrono::milliseconds wait_until(std::string_view what, std::chrono::milliseconds deadline,
                                     const std::function<bool()>& condition) {
  const auto start = Clock::now();
  if (!comes_true(deadline, condition)) {
    fail(fmt::format("after {} s it is still not so: {}", static_cast<double>(deadline.count()) / 1000, what));
  }
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
}

}  // namespace testbed
