#include "prekill/socket_hooks.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/temporary_directory.hpp"
#include "async/run_until_either.hpp"
#include "cri/run.hpp"
#include "fixture/patience.hpp"
#include "prekill/intent.hpp"
#include "testbed/fake_hook.hpp"

namespace evictd::prekill::socket_hooks_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::intent;
using test::TemporaryDirectory;
using testbed::FakeHook;
namespace hook_does = testbed::hook_does;
using Outcomes = std::map<std::string, std::string>;

/// Long enough for what does answer, on a machine under load as well.
constexpr auto time_for_answers = 3s;

struct Asking {
  [[nodiscard]] Outcomes ask(evict::KillIntent of) {
    REQUIRE(test::run_until(context, [&] { return hooks.has_any(); }));
    Outcomes outcomes;
    for (const auto& answer : test::answers(context, hooks, std::move(of))) {
      CHECK(answer.took >= core::Duration::zero());
      outcomes[answer.hook] = answer.outcome;
    }
    return outcomes;
  }

  TemporaryDirectory directory;
  asio::io_context context{1};
  SocketHooks hooks{context.get_executor(), {.path = directory.path().native(), .interval = 50ms, .pause = 1ms}};
};

}  // namespace

TEST_CASE("without a socket there is nobody to ask") {
  Asking asking;
  CHECK_FALSE(asking.hooks.has_any());
  CHECK(test::answers(asking.context, asking.hooks, intent(time_for_answers)).empty());
}

TEST_CASE("a hook hears of the pod's cgroup, and what it answers is told") {
  Asking asking;
  const FakeHook hook{asking.directory / "hook", hook_does::done};
  CHECK(asking.ask(intent(test::patience)) == Outcomes{{"hook", "done"}});
  CHECK(hook.calls() == std::vector<std::string>{
                            R"({"method":"io.systemd.oom.Prekill.Notify","parameters":{"cgroup":"/kubepods/pod1"}})"});
}

TEST_CASE("hooks that hang, lie, die, pour and trickle cost the time and no more, and the others' answers stand") {
  Asking asking;
  const auto at = [&](const char* name) { return asking.directory / name; };
  const FakeHook good{at("good"), hook_does::done};
  const FakeHook hangs{at("hangs"), hook_does::hang};
  const FakeHook dies{at("dies"), hook_does::leave};
  const FakeHook lies{at("lies"), [](FakeHook&, int connection, const std::string&) {
                        FakeHook::answer(connection, "I have done it");
                      }};
  const FakeHook fails{at("fails"), [](FakeHook&, int connection, const std::string&) {
                         FakeHook::answer(connection, R"({"error":"io.example.Full","parameters":{}})");
                       }};
  const FakeHook pours{at("pours"), [](FakeHook& hook, int connection, const std::string&) { hook.pour(connection); }};
  const FakeHook trickles{at("trickles"),
                          [](FakeHook& hook, int connection, const std::string&) { hook.trickle(connection); }};
  const FakeHook slow{at("slow"), [](FakeHook&, int connection, const std::string&) {
                        for (const char byte : std::string("{\"parameters\":{}}\0", 18)) {
                          FakeHook::send(connection, {&byte, 1});
                          std::this_thread::sleep_for(1ms);
                        }
                      }};
  REQUIRE(::mknod(at("stale").c_str(), S_IFSOCK | 0600, 0) == 0);
  REQUIRE(test::run_until(asking.context, [&] { return asking.hooks.has_any(); }));
  // All of them have been seen once the last one that was made is asked.
  Outcomes outcomes;
  REQUIRE(test::run_until(asking.context, [&] {
    outcomes = asking.ask(intent(time_for_answers));
    return outcomes.contains("stale");
  }));
  CHECK(outcomes == Outcomes{{"good", "done"},
                             {"hangs", "no answer in time"},
                             {"dies", "it left without an answer"},
                             {"lies", "its answer is not JSON"},
                             {"fails", "it failed: io.example.Full"},
                             {"pours", "its answer has more than 65536 bytes"},
                             {"trickles", "no answer in time"},
                             {"slow", "done"},
                             {"stale", "Connection refused"}});
}

TEST_CASE("where the time is over before anybody is asked, nobody is waited for") {
  Asking asking;
  const FakeHook hook{asking.directory / "hook", hook_does::hang};
  CHECK(asking.ask(intent(-1s)) == Outcomes{{"hook", "no answer in time"}});
}

TEST_CASE("asking may be broken off") {
  Asking asking;
  const FakeHook hook{asking.directory / "hook", hook_does::hang};
  REQUIRE(test::run_until(asking.context, [&] { return asking.hooks.has_any(); }));
  const auto ask = [&]() -> asio::awaitable<void> {
    auto of = intent(1h);
    co_await asking.hooks.ask(std::move(of));
  };
  const auto called = [&]() -> asio::awaitable<void> {
    asio::steady_timer timer{asking.context};
    while (hook.calls().empty()) {
      timer.expires_after(5ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
  };
  CHECK_FALSE(test::run(asking.context, async::run_until_either(ask(), called())));
  CHECK(asking.hooks.has_any());
}

}  // namespace evictd::prekill::socket_hooks_test
