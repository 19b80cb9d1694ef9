#include "rpc/server/acceptor.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <mutex>

#include "api/running_server.hpp"
#include "fixture/captured_log.hpp"
#include "os/unix_address.hpp"
#include "os/unix_socket.hpp"

namespace evictd::rpc::acceptor_test {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::TemporaryDirectory;

const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A client that says what it is told.
class Peer {
 public:
  explicit Peer(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(os::connect_to(fd_, path) == 0);
  }
  ~Peer() { ::close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void say(const std::string& text) const {
    CHECK(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  }
  /// Whether the other side has hung up.
  [[nodiscard]] bool is_closed() const {
    pollfd look{.fd = fd_, .events = POLLIN | POLLRDHUP, .revents = 0};
    return ::poll(&look, 1, 0) == 1 && (look.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
  }

 private:
  int fd_;
};

/// An acceptor on a socket that keeps whom it lets in.
class Accepting {
 public:
  explicit Accepting(AcceptorLimits limits, Greeting greeting = Greeting::Http2) {
    auto socket = os::ListeningSocket::open(path);
    REQUIRE_MESSAGE(socket.has_value(), (socket ? "" : socket.error().message));
    std::vector<Listener> listeners;
    listeners.push_back({.name = "the socket",
                         .socket = socket->take(),
                         .greeting = greeting,
                         .let_in = [this](os::FileDescriptor connection) {
                           const std::lock_guard lock(mutex_);
                           inside_.push_back(std::move(connection));
                         }});
    listening_ = std::make_unique<os::ListeningSocket>(*std::move(socket));
    acceptor_ = std::make_unique<Acceptor>(std::move(listeners), limits);
  }

  [[nodiscard]] std::size_t inside() {
    const std::lock_guard lock(mutex_);
    return inside_.size();
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    inside_.clear();
  }
  [[nodiscard]] std::vector<std::string> warnings() const { return log_.lines(); }
  void end() { acceptor_.reset(); }

 private:
  TemporaryDirectory directory_;

 public:
  const std::string path = directory_ / "s";

 private:
  std::mutex mutex_;
  std::vector<os::FileDescriptor> inside_;
  fixture::CapturedLog log_;
  std::unique_ptr<os::ListeningSocket> listening_;
  std::unique_ptr<Acceptor> acceptor_;
};

const AcceptorLimits patient{.patience = test::patience * 10};

TEST_CASE("whoever greets is let in, with nothing taken of what was said") {
  Accepting accepting(patient);
  const Peer peer(accepting.path);
  peer.say(preface + "more");
  CHECK(eventually([&] { return accepting.inside() == 1; }));
  CHECK_FALSE(peer.is_closed());
}

TEST_CASE("a greeting may come in pieces") {
  Accepting accepting(patient);
  const Peer slow(accepting.path);
  const Peer quick(accepting.path);
  for (const char letter : preface) {
    CHECK(accepting.inside() <= 1);
    slow.say(std::string(1, letter));
    if (letter == '*') quick.say(preface);
  }
  CHECK(eventually([&] { return accepting.inside() == 2; }));
}

TEST_CASE("whoever says something else, or hangs up, is not let in") {
  Accepting accepting(patient);
  const Peer web(accepting.path);
  web.say("GET / HTTP/1.1\r\n\r\n");
  const Peer nearly(accepting.path);
  nearly.say("PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n");
  {
    const Peer gone(accepting.path);
  }
  const Peer tls(accepting.path);
  tls.say("\x16\x03\x01");
  for (const auto* peer : {&web, &nearly, &tls}) CHECK(eventually([&] { return peer->is_closed(); }));
  const Peer good(accepting.path);
  good.say(preface);
  CHECK(eventually([&] { return accepting.inside() == 1; }));
}

TEST_CASE("where TLS is spoken a handshake is the greeting") {
  Accepting accepting(patient, Greeting::Tls);
  const Peer plain(accepting.path);
  plain.say(preface);
  CHECK(eventually([&] { return plain.is_closed(); }));
  const Peer client(accepting.path);
  client.say("\x16");
  client.say("\x03\x01");
  CHECK(eventually([&] { return accepting.inside() == 1; }));
}

TEST_CASE("whoever says nothing, or half of it, is dropped in the end") {
  Accepting accepting({.patience = 1s});
  const Peer silent(accepting.path);
  const Peer halting(accepting.path);
  halting.say(preface.substr(0, 10));
  for (const auto* peer : {&silent, &halting}) CHECK(eventually([&] { return peer->is_closed(); }));
  CHECK(accepting.inside() == 0);
}

TEST_CASE("the silent keep nobody out: the oldest goes for a new one") {
  Accepting accepting({.silent = 3, .patience = patient.patience});
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 5; ++i) peers.push_back(std::make_unique<Peer>(accepting.path));
  CHECK(eventually([&] { return peers[0]->is_closed() && peers[1]->is_closed(); }));
  for (int i = 2; i < 5; ++i) {
    CHECK_FALSE(peers[static_cast<std::size_t>(i)]->is_closed());
    peers[static_cast<std::size_t>(i)]->say(preface);
  }
  CHECK(eventually([&] { return accepting.inside() == 3; }));
}

TEST_CASE("no more are let in than there may be, and who left makes room") {
  Accepting accepting({.connections = 2, .patience = patient.patience});
  std::vector<std::unique_ptr<Peer>> peers;
  for (std::size_t i = 0; i < 2; ++i) {
    peers.push_back(std::make_unique<Peer>(accepting.path));
    peers.back()->say(preface);
    CHECK(eventually([&] { return accepting.inside() == i + 1; }));
  }
  for (int i = 0; i < 3; ++i) {
    const Peer refused(accepting.path);
    refused.say(preface);
    CHECK(eventually([&] { return refused.is_closed(); }));
  }
  CHECK(accepting.inside() == 2);
  REQUIRE(accepting.warnings().size() == 1);  // a flood is told once
  CHECK(accepting.warnings()[0] == "the socket: 2 connections are open: no more are taken");

  accepting.leave();
  CHECK(eventually([&] {
    const Peer again(accepting.path);
    again.say(preface);
    return eventually([&] { return accepting.inside() == 1 || again.is_closed(); }) && accepting.inside() == 1;
  }));
}

TEST_CASE("the end drops the silent and lets nobody in") {
  Accepting accepting(patient);
  const Peer silent(accepting.path);
  const Peer good(accepting.path);
  good.say(preface);
  CHECK(eventually([&] { return accepting.inside() == 1; }));
  accepting.end();
  CHECK(eventually([&] { return silent.is_closed(); }));
  CHECK_FALSE(good.is_closed());
}

}  // namespace
}  // namespace evictd::rpc::acceptor_test
