#include "evictctl/top/feed.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <iostream>
#include <optional>

#include "api/running_server.hpp"
#include "events/stored_events.hpp"
#include "evictctl/commands.hpp"
#include "os/unix_address.hpp"

namespace evictd::ctl::feed_test {
namespace {

using test::eventually;
using test::RunningServer;

/// A feed, and who runs its loop.
struct Watcher {
  boost::asio::io_context loop;
  TopState state;
  int changes = 0;
  Feed feed;

  explicit Watcher(const std::string& socket)
      : feed{loop, connect(socket).value(), [socket] { return connect(socket); }, state, [this] { ++changes; }} {}

  static Result<Client> connect(const std::string& socket) {
    Context context{.address = socket, .out = std::cout};
    return Client::connect(context);
  }

  /// Runs the loop until it is so.
  template <class Condition>
  bool becomes(Condition condition) {
    return eventually([&] {
      loop.run_for(std::chrono::milliseconds(5));
      return condition();
    });
  }
};

TEST_CASE("the feed knows the status, the ranking that was chosen, and the events as they come") {
  RunningServer running;
  running.node.set_version("1.2.3");
  running.rankings["memory.available"].set_signal("memory.available");
  running.rankings["pid.available"].set_signal("pid.available");
  running.append(3);
  Watcher watcher(running.socket);
  auto& state = watcher.state;
  CHECK(watcher.becomes([&] { return state.status && state.events.size() == 3; }));
  CHECK(state.status->version() == "1.2.3");
  CHECK(state.ranking.signal() == "memory.available");
  const int before = watcher.changes;
  CHECK(before > 0);
  running.append(2);
  CHECK(watcher.becomes([&] { return state.events.size() == 5; }));
  CHECK(state.events.back().sequence() == 5);
  CHECK(watcher.changes > before);

  const auto choose = [&](const std::string& signal) {
    state.signal = signal;
    watcher.feed.look_now();
  };
  choose("pid.available");
  CHECK(watcher.becomes([&] { return state.ranking.signal() == "pid.available"; }));
  choose("nodefs.available");
  CHECK(watcher.becomes([&] { return state.ranking_error == "no pods are known"; }));
  CHECK(state.trouble.empty());
}

TEST_CASE("that the event stream is refused is known, and over once events come") {
  RunningServer running({.subscribers = 1});
  running.append(1);
  std::optional<Watcher> watcher;
  {
    const test::Client client(running.socket);
    test::Subscriber first(*client.stub, test::new_events());
    watcher.emplace(running.socket);
    CHECK(watcher->becomes([&] { return watcher->state.events_error.contains("no more are served"); }));
    CHECK(watcher->state.trouble.empty());
  }
  CHECK(watcher->becomes([&] { return watcher->state.events.size() == 1; }));
  CHECK(watcher->state.events_error.empty());
}

TEST_CASE("only the last of many events are kept") {
  RunningServer running;
  running.append(450);
  Watcher watcher(running.socket);
  auto& state = watcher.state;
  CHECK(watcher.becomes([&] { return !state.events.empty() && state.events.back().sequence() == 450; }));
  CHECK(state.events.size() == 200);
  running.append(1);
  CHECK(watcher.becomes([&] { return state.events.back().sequence() == 451; }));
  CHECK(state.events.size() == 200);
}

TEST_CASE("the last events are known, however many numbers were never given between them") {
  RunningServer running{{}, {}, {.events = test::numbered_from(1, 100), .last = 65'536}};
  running.append(2);
  Watcher watcher(running.socket);
  const auto& state = watcher.state;
  CHECK(watcher.becomes([&] { return !state.events.empty() && state.events.back().sequence() == 65'538; }));
  CHECK(state.events.front().sequence() == 1);
  CHECK(state.events.size() == 103);  // with the GAP
}

TEST_CASE("an agent that goes away is missed, and found again when it is back, with numbers that begin anew") {
  const test::TemporaryDirectory directory;
  const auto socket = directory / "evictd.sock";
  auto running = std::make_unique<RunningServer>(api::ServerOptions{.socket = socket});
  running->append(7);
  Watcher watcher(socket);
  auto& state = watcher.state;
  CHECK(watcher.becomes([&] { return state.events.size() == 7; }));
  running.reset();
  CHECK(watcher.becomes([&] { return !state.trouble.empty(); }));
  CHECK(state.events.size() == 7);  // what was seen stays
  CHECK(state.status.has_value());

  running = std::make_unique<RunningServer>(api::ServerOptions{.socket = socket});
  running->append(2);
  CHECK(watcher.becomes([&] { return state.trouble.empty() && state.events.size() == 2; }));
  CHECK(state.events.back().sequence() == 2);
}

TEST_CASE("a feed ends at once, though the agent does not answer") {
  const test::TemporaryDirectory directory;
  const auto socket = directory / "silent.sock";
  // Somebody who takes connections and says nothing.
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(os::bind_to(listener, socket) == 0);
  REQUIRE(::listen(listener, 8) == 0);
  {
    Watcher watcher(socket);
    const auto& state = watcher.state;
    CHECK(watcher.becomes([&] { return state.trouble.find("does not answer") != std::string::npos; }));
  }
  ::close(listener);
}

}  // namespace
}  // namespace evictd::ctl::feed_test
