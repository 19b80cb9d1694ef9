#include "api/pressure_socket.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/temporary_directory.hpp"
#include "async/worker.hpp"
#include "fixture/patience.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "os/file_descriptor.hpp"
#include "os/unix_address.hpp"

namespace evictd::api::pressure_socket_test {
namespace {

using namespace std::chrono_literals;

/// Works at once, as far as the reactor can tell.
class PromptWorker final : public async::Worker {
 public:
  explicit PromptWorker(boost::asio::io_context& reactor) : reactor_{reactor} {}
  void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
    work();
    boost::asio::post(reactor_, std::move(done));
  }

 private:
  boost::asio::io_context& reactor_;
};

/// A program that listens.
class Program {
 public:
  explicit Program(const std::string& path)
      : socket_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)} {
    REQUIRE(os::connect_to(socket_.get(), path) == 0);
  }

  /// How many bytes came; -1: nothing yet, 0: it was closed.
  [[nodiscard]] ssize_t hear() const {
    std::array<char, 64> heard{};
    return ::recv(socket_.get(), heard.data(), heard.size(), MSG_DONTWAIT);
  }
  [[nodiscard]] bool say(std::string_view text) const {
    return ::send(socket_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  }
  void leave() { socket_.reset(); }

 private:
  os::FileDescriptor socket_;
};

struct Node {
  explicit Node(std::size_t connections = 256, std::size_t of_one_pod = 256) {
    socket = fixture::value_of(
        PressureSocket::open(reactor.get_executor(), worker,
                             {.path = path, .proc = "/proc", .connections = connections, .of_one_pod = of_one_pod}));
  }

  [[nodiscard]] bool run_until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + test::patience;
    while (!condition() && std::chrono::steady_clock::now() < end) {
      reactor.restart();
      reactor.run_for(5ms);
    }
    return condition();
  }
  [[nodiscard]] bool connected(std::size_t count) {
    return run_until([&] { return socket->connected() == count; });
  }

  test::TemporaryDirectory directory;
  std::string path = directory / "pressure/pressure.sock";
  boost::asio::io_context reactor{1};
  PromptWorker worker{reactor};
  std::unique_ptr<PressureSocket> socket;
};

}  // namespace

TEST_CASE("everybody who is connected is told, each time, whatever they said at first") {
  Node node;
  const Program quiet{node.path};
  const Program polite{node.path};
  REQUIRE(polite.say("some 200000 2000000"));
  REQUIRE(node.connected(2));
  CHECK(quiet.hear() == -1);
  CHECK(node.socket->tell() == 2);
  CHECK(quiet.hear() > 0);
  CHECK(polite.hear() > 0);
  CHECK(quiet.hear() == -1);
  CHECK(node.socket->tell() == 2);
  CHECK(quiet.hear() > 0);
}

TEST_CASE("who leaves is forgotten") {
  Node node;
  Program leaves{node.path};
  const Program stays{node.path};
  REQUIRE(node.connected(2));
  leaves.leave();
  CHECK(node.connected(1));
  CHECK(node.socket->tell() == 1);
}

TEST_CASE("who talks on is closed, and who never listens is closed once the kernel takes no more") {
  Node node;
  const Program talks{node.path};
  const Program deaf{node.path};
  REQUIRE(node.connected(2));
  const std::string much(4096, 'x');
  CHECK(node.run_until([&] {
    static_cast<void>(talks.say(much));
    return node.socket->connected() == 1;
  }));
  for (int time = 0; time < 100'000 && node.socket->connected() > 0; ++time) static_cast<void>(node.socket->tell());
  CHECK(node.socket->connected() == 0);
}

TEST_CASE("no more are taken than there is room for, in all and of one pod, until one leaves") {
  SUBCASE("in all") {
    Node node{3, 256};
    std::vector<std::unique_ptr<Program>> programs;
    for (int i = 0; i < 10; ++i) programs.push_back(std::make_unique<Program>(node.path));
    REQUIRE(node.run_until([&] { return programs.back()->hear() == 0 && node.socket->connected() >= 3; }));
    CHECK(node.socket->connected() == 3);
    programs.clear();
    REQUIRE(node.connected(0));
    const Program next{node.path};
    CHECK(node.connected(1));
  }
  SUBCASE("of one") {
    Node node{256, 2};  // this process
    std::vector<std::unique_ptr<Program>> programs;
    for (int i = 0; i < 10; ++i) programs.push_back(std::make_unique<Program>(node.path));
    REQUIRE(node.run_until([&] { return programs.back()->hear() == 0; }));
    CHECK(node.socket->connected() == 2);
  }
}

TEST_CASE("all may connect, and the socket goes with its owner; what a dead one left is replaced") {
  Node node;
  struct stat found{};
  REQUIRE(::stat(node.path.c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0666);
  REQUIRE(::stat(std::filesystem::path(node.path).parent_path().c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0755);
  node.socket.reset();
  CHECK_FALSE(std::filesystem::exists(node.path));
  CHECK(PressureSocket::open(node.reactor.get_executor(), node.worker, {.path = node.path}));
}

TEST_CASE("a connection is of the pod in whose cgroup its process is, whatever the pod makes below that") {
  const fixture::Tree proc{{
      fixture::dir("1", {fixture::file("cgroup", "0::/init.scope\n")}),
      fixture::dir("2", {fixture::file("cgroup", "0::/kubepods/burstable/podu-1/c1/podu-2\n")}),
      fixture::dir("3", {fixture::file("cgroup", "5:memory:/kubepods/podu-3/c\n4:pids:/kubepods/podu-3/c\n0::/\n")}),
  }};
  const auto path = proc.path().native();
  CHECK(peer_of(path, 1) == "/init.scope");
  CHECK(peer_of(path, 2) == "u-1");
  CHECK(peer_of(path, 3) == "u-3");
  CHECK(peer_of(path, 4).empty());
  CHECK(peer_of(path, 0).empty());
}

}  // namespace evictd::api::pressure_socket_test
