#include "proxy/running_calls.hpp"

#include <doctest/doctest.h>

#include <future>
#include <optional>

namespace evictd::proxy::running_calls_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("calls under way are waited for, until the time is over") {
  RunningCalls calls;
  CHECK(calls.wait_until_none(0ms));
  std::optional<RunningCalls::Ticket> first{calls.begin()};
  std::optional<RunningCalls::Ticket> second{calls.begin()};
  CHECK_FALSE(calls.wait_until_none(1ms));
  first.reset();
  CHECK_FALSE(calls.wait_until_none(1ms));
  auto waiting = std::async(std::launch::async, [&] { return calls.wait_until_none(60s); });
  second.reset();
  CHECK(waiting.get());
}

TEST_CASE("no call begins once they are closed; those before go on") {
  RunningCalls calls;
  auto before = calls.begin();
  calls.close();
  CHECK(before);
  CHECK_FALSE(calls.begin());
  CHECK_FALSE(calls.wait_until_none(0ms));
  {
    const auto moved = std::move(before);
    CHECK(moved);
    CHECK_FALSE(calls.wait_until_none(0ms));
  }
  CHECK(calls.wait_until_none(0ms));
}

}  // namespace
}  // namespace evictd::proxy::running_calls_test
