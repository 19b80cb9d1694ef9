// What could hold up the end of evictd: a disk that does not answer, a client that does not read.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "os/file_descriptor.hpp"
#include "os/unix_address.hpp"
#include "soon.hpp"
#include "testbed/agent.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::ends_test {

using namespace std::chrono_literals;

namespace {

/// Opening it hangs, for nobody has its other end. It stands for a file on a disk that does not answer.
void make_hanging(const std::filesystem::path& path) {
  std::filesystem::create_directories(path.parent_path());
  const auto made = path.native() + ".made";
  REQUIRE(::mkfifo(made.c_str(), 0644) == 0);
  std::filesystem::rename(made, path);
}

/// A client that asks over HTTP/2 for much and takes nothing of it, whatever gRPC would do in its place.
class DeafClient {
 public:
  explicit DeafClient(const std::filesystem::path& socket) : fd_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    REQUIRE(evictd::os::connect_to(fd_.get(), socket.native()) == 0);
    const std::string settings("\0\4\x7f\xff\xff\xff", 6);  // INITIAL_WINDOW_SIZE: as much as can be said
    const std::string window("\x7f\xff\0\0", 4);
    say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, settings) + frame(8, 0, 0, window));
  }

  /// Asks for the node's status so often.
  void ask(int times) {
    std::string headers;
    for (const auto& [name, value] : {std::pair<std::string_view, std::string_view>{":method", "POST"},
                                      {":scheme", "http"},
                                      {":path", "/evictd.v1.EvictionService/GetNodeStatus"},
                                      {":authority", "localhost"},
                                      {"content-type", "application/grpc"},
                                      {"te", "trailers"}})
      headers += std::string(1, '\0') + sized(name) + sized(value);  // a literal that is not indexed
    for (int i = 0; i < times; ++i, stream_ += 2)
      say(frame(1, 4, stream_, headers) + frame(0, 1, stream_, std::string(5, '\0')));
  }

  /// Bytes that lie there for it.
  [[nodiscard]] int unread() const {
    int bytes = 0;
    REQUIRE(::ioctl(fd_.get(), FIONREAD, &bytes) == 0);
    return bytes;
  }

 private:
  static std::string sized(std::string_view text) {
    return static_cast<char>(text.size()) + std::string(text);  // below 127 bytes
  }
  static std::string big_endian(std::uint32_t number, std::size_t bytes) {
    std::string text;
    while (bytes-- > 0) text += static_cast<char>(number >> (8 * bytes));
    return text;
  }
  static std::string frame(char type, char flags, std::uint32_t stream, const std::string& payload) {
    return big_endian(static_cast<std::uint32_t>(payload.size()), 3) + type + flags + big_endian(stream, 4) + payload;
  }
  void say(const std::string& bytes) const {
    REQUIRE(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }

  evictd::os::FileDescriptor fd_;
  std::uint32_t stream_ = 1;
};

/// The unit's TimeoutStopSec is 15 s.
constexpr auto longest_end = 14s;

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("while a disk hangs on which thresholds are saved, the hog goes, calls are answered and evictd ends") {
    integration::FaultScene scene;
    auto& agent = *scene.agent;
    const auto directory = scene.testbed.directory();
    make_hanging(directory / "thresholds.d/90-evictctl.yaml.new");
    const auto set = [&](const std::string& value, const std::vector<std::string>& more) {
      std::vector<std::string> command{
          testbed::evictctl_program(), "--address", "unix:" + (directory / "admin.sock").native(), "thresholds", "set",
          "memory.available=" + value};
      command.insert(command.end(), more.begin(), more.end());
      auto evictctl = scene.testbed.spawn(command);
      CHECK(evictctl.wait(30s).has_value());
      return evictctl.errors();
    };
    CHECK(set("200Mi", {"--save"}).contains("its disk did not take it within"));
    CHECK(set("250Mi", {"--save"}).contains("is still being written for an earlier change"));
    CHECK(set("310Mi", {}) == "");
    integration::expect_hog_goes_soon(scene);

    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(longest_end) == 0);
    CHECK(agent.process().errors().contains("it ends although something hangs: reading or writing thresholds"));
  }

  TEST_CASE("while a configuration hangs that is read again, the hog goes, status says so and evictd ends") {
    integration::FaultScene scene;
    auto& agent = *scene.agent;
    make_hanging(scene.testbed.directory() / "agent.yaml");
    testbed::wait_until("it is said that the configuration cannot be read", 30s, [&] {
      const auto status = agent.status();
      return std::ranges::any_of(status.warnings(), [](const std::string& line) {
        return line.contains("its files could not be read within 10 s");
      });
    });
    integration::expect_hog_goes_soon(scene);
    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(longest_end) == 0);
  }

  TEST_CASE("a client that does not read what it asked for does not hold up the end of evictd") {
    testbed::Testbed testbed{{.node = {.memory_limit = 1 << 30}, .containerd = {}, .start_containerd = false}};
    std::string sections;
    SUBCASE("of gRPC's only server") {}
    SUBCASE("where there is another one") {
      sections = fmt::format("devicePlugins: {{directory: {}}}\n", (testbed.directory() / "plugins").native());
    }
    testbed::Agent agent{
        testbed,
        {.thresholds = "evictionHard: {memory.available: 100Mi}", .sections = sections, .wait_until_ready = false}};
    DeafClient client{testbed.directory() / "evictd.sock"};
    testbed::wait_until("its socket is full", 60s, [&, before = 0]() mutable {
      client.ask(100);
      std::this_thread::sleep_for(200ms);
      return std::exchange(before, client.unread()) == client.unread() && before > 64 << 10;
    });
    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(longest_end) == 0);
  }
}

}  // namespace integration::ends_test
