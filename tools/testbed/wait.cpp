#include "testbed/wait.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "os/numbers.hpp"
#include "testbed/failure.hpp"

namespace testbed {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

std::int64_t read_patience() {
  const char* variable = std::getenv("EVICTD_TEST_PATIENCE");
  if (variable == nullptr) return 1;
  const auto patience = evictd::os::parse_number(variable).value_or(0);
  if (patience < 1) fail(fmt::format("EVICTD_TEST_PATIENCE is \"{}\", not a whole number above zero", variable));
  return patience;
}

}  // namespace

std::chrono::milliseconds patient(std::chrono::milliseconds time) {
  static const auto patience = read_patience();
  return time * patience;
}

bool comes_true(std::chrono::milliseconds deadline, const std::function<bool()>& condition) {
  const auto end = Clock::now() + patient(deadline);
  while (!condition()) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(3ms);
  }
  return true;
}

void wait_until(std::string_view what, std::chrono::milliseconds deadline, const std::function<bool()>& condition) {
  if (comes_true(deadline, condition)) return;
  fail(fmt::format("after {} s it is still not so: {}", static_cast<double>(patient(deadline).count()) / 1000, what));
}

}  // namespace testbed
