#include "wake/kernel_log.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <string>
#include <vector>

#include "os/file_error.hpp"

namespace evictd::wake::kernel_log_test {
namespace {

using namespace std::chrono_literals;

const std::string end = "Memory cgroup out of memory: Killed process 7 (load) total-vm:9kB, anon-rss:4kB, file-rss:0kB";

struct Heard final : KernelLog::Listener {
  bool killed(const core::OomKill& kill) override {
    pids.push_back(kill.pid);
    return is_news;
  }
  void kills_missed() override { ++missed; }

  std::vector<std::int64_t> pids;
  int missed = 0;
  bool is_news = false;
};

/// A log that the test writes, a record at a time.
struct Log {
  Log() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }
  void write(const std::string& record) const {
    REQUIRE(::send(writing.get(), record.data(), record.size(), 0) == static_cast<ssize_t>(record.size()));
  }
  os::FileDescriptor reading;
  os::FileDescriptor writing;
};

struct Scene {
  bool run_until(const auto& condition) {
    const auto give_up = std::chrono::steady_clock::now() + 30s;
    while (!condition() && std::chrono::steady_clock::now() < give_up) {
      reactor.restart();
      reactor.run_one_for(100ms);
    }
    return condition();
  }

  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  Heard heard;
};

}  // namespace

TEST_CASE("kills are told in their order, and what others log between them is passed over") {
  Scene scene;
  Log log;
  KernelLog source{scene.reactor.get_executor(),
                   scene.wakes,
                   std::move(log.reading),
                   scene.heard,
                   {.pause = 1ms, .most_records = 2}};
  CHECK(source.works());
  log.write("6,1,5,-;eth0: link up");
  log.write("12,2,5,-;" + end);  // somebody's, not the kernel's
  log.write("3,3,5,-;" + end);
  CHECK(scene.run_until([&] { return scene.heard.pids == std::vector<std::int64_t>{7}; }));
  CHECK(source.status().at(0).wakes == 0);
  scene.heard.is_news = true;
  log.write("3,4,5,-;" + end);
  CHECK(scene.run_until([&] { return scene.heard.pids.size() == 2; }));
  CHECK(source.status().at(0).wakes == 1);
  CHECK(source.status().at(0).state == "armed");
}

TEST_CASE("a log that ends is off, and there may have been kills") {
  Scene scene;
  Log log;
  KernelLog source{scene.reactor.get_executor(), scene.wakes, std::move(log.reading), scene.heard};
  log.writing.reset();
  CHECK(scene.run_until([&] { return scene.heard.missed == 1; }));
  CHECK_FALSE(source.works());
  CHECK(source.status().at(0).state.starts_with("off: "));
}

TEST_CASE("a log that may not be read is off, and no failure") {
  Scene scene;
  KernelLog source{scene.reactor.get_executor(), scene.wakes, std::unexpected(os::system_error(EPERM, "/dev/kmsg")),
                   scene.heard};
  CHECK_FALSE(source.works());
  CHECK(source.status().at(0).state.starts_with("off: /dev/kmsg: "));
  CHECK_FALSE(open_kernel_log("/nowhere/kmsg").has_value());
}

}  // namespace evictd::wake::kernel_log_test
