#include "wake/wakes.hpp"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "wake/heard_sources.hpp"

namespace evictd::wake::wakes_test {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using evictd::core::Instant;
using evictd::wake::Wake;
using evictd::wake::Wakes;

namespace {

constexpr Instant at(evictd::core::Duration time) { return Instant{time}; }

/// Collects the passes that a loop would run.
struct Loop {
  asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  std::vector<Wake> passes;

  Loop() { asio::co_spawn(reactor, run(), asio::detached); }
  asio::awaitable<void> run() {
    for (;;) passes.push_back(co_await wakes.next());
  }
};

}  // namespace

TEST_CASE(
    "reasons that come before the loop is free make one pass, which remembers every reason, and when it first and last "
    "came") {
  Loop loop;
  loop.wakes.notify({evictd::core::WakeSource::Timer, "every 10s", at(5ms)});
  loop.wakes.notify({evictd::core::WakeSource::Memcg, "memory.available<1Gi", at(3ms)});
  loop.wakes.notify({evictd::core::WakeSource::Memcg, "memory.available<1Gi", at(7ms)});
  loop.wakes.notify({evictd::core::WakeSource::Memcg, "memory.available<1Gi", at(2ms)});  // one that waited for a disk
  loop.reactor.run_for(100ms);

  REQUIRE(loop.passes.size() == 1);
  CHECK(loop.passes[0].time == at(2ms));
  CHECK(loop.passes[0].source() == evictd::core::WakeSource::Timer);
  REQUIRE(loop.passes[0].reasons.size() == 2);
  CHECK(loop.passes[0].reasons[1].time == at(2ms));
  CHECK(loop.passes[0].reasons[1].latest == at(7ms));
}

TEST_CASE("a reason that comes while a pass runs begins the next pass") {
  Loop loop;
  loop.wakes.notify({evictd::core::WakeSource::Timer, "", at(1ms)});
  loop.reactor.run_for(20ms);
  loop.wakes.notify({evictd::core::WakeSource::Memcg, "", at(2ms)});
  asio::post(loop.reactor, [&] { loop.wakes.notify({evictd::core::WakeSource::Deadline, "", at(3ms)}); });
  loop.reactor.restart();
  loop.reactor.run_for(100ms);

  std::size_t reasons = 0;
  for (const auto& pass : loop.passes) reasons += pass.reasons.size();
  CHECK(loop.passes.size() >= 2);
  CHECK(reasons == 3);
}

TEST_CASE("without a reason there is no pass") {
  Loop loop;
  loop.reactor.run_for(20ms);
  CHECK(loop.passes.empty());
}

TEST_CASE("what a source cannot do any more reaches whoever listens, once, even who listens later") {
  Loop loop;
  evictd::test::HeardSources heard;
  loop.wakes.degraded("files", {"nobody listens yet"});
  loop.wakes.listen(heard);
  CHECK(heard.failed == std::vector<std::string>{"files: nobody listens yet"});
  loop.wakes.degraded("memcg", {"the cgroup has gone"});
  loop.wakes.listen(heard);
  CHECK(heard.failed == std::vector<std::string>{"files: nobody listens yet", "memcg: the cgroup has gone"});
}

}  // namespace evictd::wake::wakes_test
