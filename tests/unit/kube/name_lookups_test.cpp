#include "kube/name_lookups.hpp"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/api_server.hpp"
#include "kube/client.hpp"
#include "kube/http_hook.hpp"
#include "kube/reactor.hpp"
#include "kube/stuck_names.hpp"
#include "os/now.hpp"

namespace evictd::kube::name_lookups_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace evictd::test;
using fixture::error_of;
using fixture::value_of;

/// Look-ups with what came of them.
struct Fixture {
  KubeReactor reactor;
  NameLookups lookups{2};
  std::vector<std::unique_ptr<async::SideThread>> threads;

  /// Its answer, once it is there; an error of the beginning at once.
  std::shared_ptr<std::optional<Result<Endpoints>>> begin(const std::string& host) {
    auto answer = std::make_shared<std::optional<Result<Endpoints>>>();
    auto thread = lookups.begin(reactor.context.get_executor(), {.host = host, .port = "80"},
                                [answer](Result<Endpoints>&& found) { *answer = std::move(found); });
    if (thread)
      threads.push_back(*std::move(thread));
    else
      *answer = std::unexpected(thread.error());
    return answer;
  }
  Result<Endpoints> look_up(const std::string& host) {
    const auto answer = begin(host);
    REQUIRE(reactor.run_until([&] { return answer->has_value(); }));
    return **answer;
  }
};

}  // namespace

TEST_CASE("a name is looked up, and one that is not there is told of") {
  Fixture f;
  const auto found = value_of(f.look_up("localhost"));
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().address().is_loopback());
  CHECK(found.front().port() == 80);
  CHECK(error_of(f.look_up("a..b")).starts_with("cannot be resolved: "));
}

TEST_CASE("a name that nobody answers for holds up no other, and too many of them are refused until one has ended") {
  Fixture f;
  {
    const StuckNames stuck;
    const auto first = f.begin("a.stuck.invalid");
    REQUIRE(f.reactor.run_until([&] { return StuckNames::waiting() == 1; }));
    CHECK(f.look_up("localhost"));
    const auto second = f.begin("b.stuck.invalid");
    CHECK(error_of(f.look_up("localhost")) == "cannot be resolved: 2 look-ups of names are under way already");
    REQUIRE(f.reactor.run_until([&] { return StuckNames::waiting() == 2; }));
    f.threads.clear();  // nobody waits for them any more, and they are under way all the same
    CHECK_FALSE(f.look_up("localhost"));
    CHECK_FALSE(first->has_value());
    CHECK_FALSE(second->has_value());
  }
  CHECK(f.reactor.run_until([&] { return f.look_up("localhost").has_value(); }));
}

TEST_CASE("a hook's host that nobody answers for keeps nobody from the API server, nor from ending") {
  const StuckNames stuck;
  KubeReactor reactor;
  const auto executor = reactor.context.get_executor();
  const core::HttpGetHook hook{.host = "hook.stuck.invalid", .port = "80"};
  asio::co_spawn(executor, run_http_hook(executor, hook, "127.0.0.1", os::now() + 1h), asio::detached);
  REQUIRE(reactor.run_until([] { return StuckNames::waiting() == 1; }));

  ApiServer server;
  server.then(answers(200, "{}"));
  Client client{executor, reactor.workers.get_executor(),
                credentials_for("http://localhost:" + std::to_string(server.port()))};
  CHECK(value_of(reactor.run(client.send(get("/version"), patience))).status == 200);
  // The reactor goes while the name is being asked for: Asio's own resolver would wait for it here.
}

}  // namespace evictd::kube::name_lookups_test
