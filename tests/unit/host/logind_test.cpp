#include "host/logind.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "cri/run.hpp"
#include "fixture/tree.hpp"
#include "host/logind_stand_in.hpp"
#include "host/system_bus.hpp"
#include "support/skip.hpp"

// evictd's side of logind, over a real dbus-daemon. logind itself is a stand-in here, which does what the real one does
// not on demand; tests/integration/shutdown_test.cpp has the real one.

namespace evictd::host::logind_test {
namespace {

using namespace std::chrono_literals;
using test::LogindStandIn;
using test::SystemdStandIn;

/// The bus that sd_bus_open_system finds.
struct PrivateBus {
  fixture::Tree tree;
  test::SystemBus bus{tree.path()};

  PrivateBus() { ::setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.address().c_str(), 1); }
  PrivateBus(const PrivateBus&) = delete;
  PrivateBus& operator=(const PrivateBus&) = delete;
  ~PrivateBus() { ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS"); }
};

/// Runs evictd's side, and does as the shutdown machine of a node without pods: a lock while no shutdown is pending.
struct Client final : private Logind::Listener {
  boost::asio::io_context reactor{1};
  std::vector<bool> pendings;
  std::vector<std::string> errors;
  Logind logind;

  explicit Client(LogindOptions options, InhibitorLock inherited = {})
      : logind{reactor.get_executor(), std::move(options), std::move(inherited), *this} {
    boost::asio::co_spawn(reactor, logind.run(), boost::asio::detached);
  }
  ~Client() {
    logind.stop();
    reactor.restart();
    reactor.run_for(100ms);
  }

  bool until(const std::function<bool()>& done) { return test::run_until(reactor, done); }
  bool holds_lock() {
    return until([&] { return logind.status().holds_lock; });
  }

 private:
  void shutdown_pending(bool pending) override {
    pendings.push_back(pending);
    if (!pending) logind.take_lock();
  }
  void logind_changed(const LogindStatus& status) override { errors.push_back(status.error); }
};

LogindOptions needing(core::Duration needed) { return {.needed = needed, .reconnect_interval = 20ms}; }

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_SUITE_BEGIN("bus");

TEST_CASE("it takes a delay lock, hears of a shutdown, lets go of the lock, and takes a new one when it is off") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  LogindStandIn logind{bus.bus};
  Client client{needing(5s)};
  REQUIRE(client.holds_lock());
  CHECK(logind.locks() == 1);
  CHECK(logind.asked() == std::vector<std::string>{"shutdown/evictd/delay"});
  CHECK(client.logind.status().connected);
  CHECK(client.logind.status().inhibit_delay == 5s);
  CHECK(client.logind.status().error.empty());

  logind.prepare_for_shutdown(true);
  REQUIRE(client.until([&] { return client.pendings == std::vector{false, true}; }));
  CHECK(logind.locks() == 1);
  client.logind.release_lock();
  CHECK(logind.locks() == 0);
  CHECK_FALSE(client.logind.status().holds_lock);

  logind.prepare_for_shutdown(false);
  REQUIRE(client.holds_lock());
  CHECK(logind.locks() == 1);
  CHECK(client.pendings == std::vector{false, true, false});
}

TEST_CASE("a new lock takes the place of the old one, which goes only then") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  LogindStandIn logind{bus.bus};
  Client client{needing(5s)};
  REQUIRE(client.holds_lock());
  client.logind.take_lock();
  REQUIRE(client.until([&] { return logind.asked().size() == 2; }));
  REQUIRE(client.until([&] { return logind.locks() == 1; }));
  CHECK(client.logind.status().holds_lock);
}

TEST_CASE("a lock that comes when nobody wants it any more is let go") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  LogindStandIn logind{bus.bus};
  Client client{needing(5s)};
  REQUIRE(client.holds_lock());
  client.logind.take_lock();
  client.logind.release_lock();
  REQUIRE(client.until([&] { return logind.asked().size() == 2; }));
  REQUIRE(client.until([&] { return logind.locks() == 0; }));
  CHECK_FALSE(client.logind.status().holds_lock);
}

TEST_CASE("a delay that is too short is told with what to do, and the lock is taken nevertheless") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  LogindStandIn logind{bus.bus, 5s};
  Client client{needing(30s)};
  REQUIRE(client.holds_lock());
  CHECK(client.errors ==
        std::vector<std::string>{
            "systemd-logind lets a shutdown wait for 5s only, and the pods' grace periods take 30s: set "
            "InhibitDelayMaxSec=30 in logind.conf(5), or shutdown.raiseInhibitDelay"});
}

TEST_CASE("a delay that is too short is raised by a drop-in where that is wanted") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  LogindStandIn logind{bus.bus, 5s};
  std::vector<std::string> signals;
  SystemdStandIn systemd{bus.bus, [&](const std::string& unit, int signal) {
                           signals.push_back(unit + " " + std::to_string(signal));
                           logind.set_inhibit_delay(31s);
                         }};
  auto options = needing(30500ms);
  options.raise_inhibit_delay = true;
  options.drop_ins = bus.tree.path("logind.conf.d");
  Client client{options};
  REQUIRE(client.holds_lock());
  CHECK(signals == std::vector<std::string>{"systemd-logind.service 1"});
  CHECK(text_of(options.drop_ins / "99-evictd.conf").ends_with("[Login]\nInhibitDelayMaxSec=31\n"));
  CHECK(client.logind.status().inhibit_delay == 31s);
  CHECK(client.logind.status().error.empty());
}

TEST_CASE("where logind does not heed the drop-in, or systemd does not pass the word on, that is told") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  LogindStandIn logind{bus.bus, 5s};
  auto options = needing(30s);
  options.raise_inhibit_delay = true;
  options.drop_ins = bus.tree.path("logind.conf.d");
  SUBCASE("logind") {
    SystemdStandIn systemd{bus.bus, [](const std::string&, int) {}};
    Client client{options};
    REQUIRE(client.holds_lock());
    CHECK(client.logind.status().error.starts_with("systemd-logind lets a shutdown wait for 5s only"));
  }
  SUBCASE("systemd") {
    Client client{options};
    REQUIRE(client.holds_lock());
    CHECK(client.logind.status().error.starts_with("systemd-logind could not be told to read "));
  }
  SUBCASE("the file") {
    options.drop_ins = bus.tree.path("bus.conf");
    Client client{options};
    REQUIRE(client.holds_lock());
    CHECK(client.logind.status().error.starts_with("shutdown.logindDropIns: "));
  }
}

TEST_CASE("a delay that is long enough is left alone, whatever is configured") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  LogindStandIn logind{bus.bus, 30s};
  auto options = needing(30s);
  options.raise_inhibit_delay = true;
  options.drop_ins = bus.tree.path("logind.conf.d");
  Client client{options};
  REQUIRE(client.holds_lock());
  CHECK_FALSE(std::filesystem::exists(options.drop_ins));
}

TEST_CASE("a shutdown that is pending already when evictd comes is seen, and no lock asked for") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  LogindStandIn logind{bus.bus};
  logind.prepare_for_shutdown(true);
  Client client{needing(5s)};
  REQUIRE(client.until([&] { return client.pendings == std::vector{true}; }));
  CHECK(logind.asked().empty());
}

TEST_CASE("a lock that logind refuses is told, until it gives one") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  LogindStandIn logind{bus.bus};
  logind.refuse(true);
  Client client{needing(5s)};
  REQUIRE(client.until([&] { return !client.errors.empty(); }));
  CHECK(client.errors.back() ==
        "systemd-logind gives no lock: org.freedesktop.login1.OperationInProgress: The operation is under way");
  logind.refuse(false);
  logind.prepare_for_shutdown(false);
  REQUIRE(client.holds_lock());
  CHECK(client.errors.back().empty());
}

TEST_CASE("a lock that logind has refused is asked for again, for as long as it is wanted, and told of once") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  LogindStandIn logind{bus.bus};
  logind.refuse(true);
  Client client{needing(5s)};
  REQUIRE(client.until([&] { return !client.errors.empty(); }));
  const auto refusal = client.errors.back();
  SUBCASE("it is wanted") {
    CHECK(client.until([&] { return logind.asked().size() >= 3; }));
    logind.refuse(false);
    REQUIRE(client.holds_lock());
    CHECK(client.errors == std::vector<std::string>{refusal, ""});
    CHECK(logind.locks() == 1);
  }
  SUBCASE("it is not wanted any more") {
    client.logind.release_lock();
    const auto asked = logind.asked().size() + 1;  // one may be under way
    client.until([end = std::chrono::steady_clock::now() + 200ms] { return std::chrono::steady_clock::now() > end; });
    CHECK(logind.asked().size() <= asked);
    client.logind.take_lock();
    logind.refuse(false);
    CHECK(client.holds_lock());
  }
}

TEST_CASE("without a bus, or without logind on it, it says so once and comes back when they do") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  bus.bus.stop();
  Client client{needing(5s)};
  REQUIRE(client.until([&] { return client.errors.size() == 1; }));
  CHECK(client.errors.back().starts_with("no system bus: "));
  client.until([&, end = std::chrono::steady_clock::now() + 100ms] { return std::chrono::steady_clock::now() > end; });
  CHECK(client.errors.size() == 1);

  bus.bus.start();
  REQUIRE(client.until([&] { return client.errors.size() == 2; }));
  CHECK(client.errors.back().find("org.freedesktop.login1") != std::string::npos);
  LogindStandIn logind{bus.bus};
  REQUIRE(client.holds_lock());
  CHECK(client.errors.back().empty());
}

TEST_CASE("the lock outlives the connection, and is exchanged for a new one when the bus is back") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  std::optional<LogindStandIn> logind{std::in_place, bus.bus};
  Client client{needing(5s)};
  REQUIRE(client.holds_lock());
  bus.bus.stop();
  REQUIRE(client.until([&] { return !client.logind.status().connected; }));
  CHECK(client.logind.status().holds_lock);
  CHECK(logind->locks() == 1);
  bus.bus.start();
  LogindStandIn after{bus.bus};
  REQUIRE(client.until([&] { return after.locks() == 1; }));
  REQUIRE(client.until([&] { return logind->locks() == 0; }));
  CHECK(client.logind.status().connected);
}

TEST_CASE("what was pending while the bus was away is known when it is back; the lock is kept then") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  std::optional<LogindStandIn> logind{std::in_place, bus.bus};
  Client client{needing(5s)};
  REQUIRE(client.holds_lock());
  bus.bus.stop();
  REQUIRE(client.until([&] { return !client.logind.status().connected; }));
  bus.bus.start();
  LogindStandIn after{bus.bus};
  after.prepare_for_shutdown(true);
  REQUIRE(client.until([&] { return !client.pendings.empty() && client.pendings.back(); }));
  CHECK(client.logind.status().holds_lock);
  CHECK(logind->locks() == 1);
}

TEST_CASE("a logind that is replaced by another is asked anew") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  std::optional<LogindStandIn> logind{std::in_place, bus.bus};
  Client client{needing(5s)};
  REQUIRE(client.holds_lock());
  logind.reset();
  REQUIRE(client.until([&] { return !client.logind.status().connected; }));
  LogindStandIn after{bus.bus, 7s};
  REQUIRE(client.until([&] { return after.locks() == 1; }));
  CHECK(client.logind.status().inhibit_delay == 7s);
}

TEST_CASE("a logind that does not answer holds nothing up, and is asked again") {
  SKIP_IF(test::SystemBus::missing());
  PrivateBus bus;
  LogindStandIn logind{bus.bus};
  logind.be_silent(true);
  Client client{needing(5s)};
  REQUIRE(client.until([&] { return client.errors.size() == 1; }));  // after 5 s
  CHECK(client.errors.back().starts_with("systemd-logind's InhibitDelayMaxUSec: "));
  logind.be_silent(false);
  REQUIRE(client.holds_lock());
}

TEST_CASE("an inherited lock is held from the first moment on, and exchanged unless a shutdown is pending") {
  SKIP_IF(test::SystemBus::missing());
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const evictd::os::FileDescriptor other_end{ends[0]};
  PrivateBus bus;
  LogindStandIn logind{bus.bus};
  bool pending = false;
  SUBCASE("none is") {}
  SUBCASE("one is") { pending = true; }
  logind.prepare_for_shutdown(pending);
  Client client{needing(5s), InhibitorLock{ends[1]}};
  CHECK(client.logind.status().holds_lock);
  REQUIRE(client.until([&] { return client.pendings.size() == 1; }));
  REQUIRE(client.until([&] { return logind.locks() == (pending ? 0 : 1); }));
  CHECK(client.logind.status().holds_lock);
}

TEST_SUITE_END();

}  // namespace
}  // namespace evictd::host::logind_test
