#include "evictctl/top/feed.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "api/running_server.hpp"

namespace evictd::ctl::feed_test {
namespace {

using test::eventually;
using test::RunningServer;

Feed feed_of(const std::string& socket, const std::string& signal) {
  const auto connect = [socket] { return Client::connect("unix://" + socket); };
  auto client = connect();
  REQUIRE(client.has_value());
  return Feed(*std::move(client), connect, signal);
}

/// Takes what is new until it fits.
template <class Condition>
bool becomes(Feed& feed, TopState& state, Condition condition) {
  return eventually([&] {
    feed.take(state);
    return condition();
  });
}

TEST_CASE("the feed knows the status, the ranking that was chosen, and the events as they come") {
  RunningServer running;
  running.node.set_version("1.2.3");
  running.rankings["memory.available"].set_signal("memory.available");
  running.rankings["pid.available"].set_signal("pid.available");
  running.append(3);
  auto feed = feed_of(running.socket, "memory.available");
  TopState state;
  CHECK(becomes(feed, state, [&] { return state.status && state.events.size() == 3; }));
  CHECK(state.status->version() == "1.2.3");
  CHECK(state.ranking.signal() == "memory.available");
  running.append(2);
  CHECK(becomes(feed, state, [&] { return state.events.size() == 5; }));
  CHECK(state.events.back().sequence() == 5);

  feed.choose("pid.available");
  CHECK(becomes(feed, state, [&] { return state.ranking.signal() == "pid.available"; }));
  feed.choose("nodefs.available");
  CHECK(becomes(feed, state, [&] { return state.ranking_error == "no pods are known"; }));
  CHECK(state.trouble.empty());
}

TEST_CASE("news makes the descriptor readable, and taking it makes it so no more") {
  RunningServer running;
  auto feed = feed_of(running.socket, "memory.available");
  pollfd news{.fd = feed.descriptor(), .events = POLLIN, .revents = 0};
  CHECK(::poll(&news, 1, 60'000) == 1);
  TopState state;
  feed.take(state);
  CHECK(state.status.has_value());
}

TEST_CASE("only the last of many events are kept") {
  RunningServer running;
  running.append(450);
  auto feed = feed_of(running.socket, "memory.available");
  TopState state;
  CHECK(becomes(feed, state, [&] { return !state.events.empty() && state.events.back().sequence() == 450; }));
  CHECK(state.events.size() == 200);
  running.append(1);
  CHECK(becomes(feed, state, [&] { return state.events.back().sequence() == 451; }));
  CHECK(state.events.size() == 200);
}

TEST_CASE("an agent that goes away is missed, and found again when it is back, with numbers that begin anew") {
  const test::TemporaryDirectory directory;
  const auto socket = directory / "evictd.sock";
  auto running = std::make_unique<RunningServer>(api::ServerOptions{.socket = socket});
  running->append(7);
  auto feed = feed_of(socket, "memory.available");
  TopState state;
  CHECK(becomes(feed, state, [&] { return state.events.size() == 7; }));
  running.reset();
  CHECK(becomes(feed, state, [&] { return !state.trouble.empty(); }));
  CHECK(state.events.size() == 7);  // what was seen stays
  CHECK(state.status.has_value());

  running = std::make_unique<RunningServer>(api::ServerOptions{.socket = socket});
  running->append(2);
  CHECK(becomes(feed, state, [&] { return state.trouble.empty() && state.events.size() == 2; }));
  CHECK(state.events.back().sequence() == 2);
}

TEST_CASE("a feed ends at once, though the agent does not answer") {
  const test::TemporaryDirectory directory;
  const auto socket = directory / "silent.sock";
  // Somebody who takes connections and says nothing.
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener, 8) == 0);
  {
    auto feed = feed_of(socket, "memory.available");
    TopState state;
    CHECK(becomes(feed, state, [&] { return state.trouble.find("does not answer") != std::string::npos; }));
  }
  ::close(listener);
}

}  // namespace
}  // namespace evictd::ctl::feed_test
