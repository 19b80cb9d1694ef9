#include "async/forget_timer.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace evictd::async::forget_timer_test {
namespace {

namespace fs = std::filesystem;
namespace asio = boost::asio;
using namespace std::chrono_literals;

/// Whether a timer of the kernel's waits for so many seconds, or one less (proc(5): /proc/PID/fdinfo, it_value).
bool waits_for(long seconds) {
  for (const auto& entry : fs::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("it_value: (")) continue;
      const long left = std::stol(line.substr(11));
      if (left == seconds || left == seconds - 1) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("the kernel does not wake the reactor for a timer that was forgotten") {
  asio::io_context reactor{1};
  asio::steady_timer later{reactor, 222s};
  asio::steady_timer sooner{reactor, 111s};
  bool ran = false;
  later.async_wait([](auto) {});
  sooner.async_wait([&](boost::system::error_code error) { ran = !error; });
  reactor.poll();
  REQUIRE(waits_for(111));

  forget(sooner);
  reactor.run_for(50ms);
  CHECK_FALSE(ran);
  CHECK_FALSE(waits_for(111));
  CHECK(waits_for(222));
}

}  // namespace evictd::async::forget_timer_test
