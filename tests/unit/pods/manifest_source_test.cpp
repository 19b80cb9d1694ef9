#include "pods/manifest_source.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <future>

#include "cri/run.hpp"
#include "fixture/tree.hpp"
#include "pods/fake_source.hpp"
#include "wake/directory_watch.hpp"

namespace evictd::pods::manifest_source_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using State = SpecSourceStatus::State;

std::string manifest(const std::string& name, int priority) {
  return "metadata: {name: " + name + "}\nspec: {priority: " + std::to_string(priority) +
         ", containers: [{name: main}]}\n";
}

/// A directory that inotify watches, as the agent has it put together. Nothing but inotify looks within a test.
struct Watched : test::HeardSpecs {
  fixture::Tree tree{{fixture::dir("manifests", {fixture::file("web.yaml", manifest("web", 1))})}};
  asio::io_context reactor{1};
  asio::thread_pool pool{1};
  wake::Wakes wakes{reactor.get_executor()};
  ManifestSource source{reactor.get_executor(),
                        pool.get_executor(),
                        {.directory = tree.path("manifests"), .node_name = "n1", .interval = 1h, .settle = 1ms}};
  wake::DirectoryWatch watch{
      reactor.get_executor(),
      wakes,
      {.source = core::WakeSource::Manifests, .detail = "changed", .interval = 1ms},
      [this](const wake::Arming&) { return std::vector<std::filesystem::path>{tree.path("manifests")}; },
      [this] { source.look(); }};

  Watched() {
    source.start(*this);
    watch.arm({});
  }
  ~Watched() { pool.join(); }

  bool until(const std::function<bool()>& done) { return test::run_until(reactor, done); }
  std::optional<std::int32_t> priority_of(std::string_view key) const {
    for (const auto& pod : *source.pods())
      if (pod->key() == key) return pod->priority;
    return std::nullopt;
  }
};

}  // namespace

TEST_CASE("what is in the directory is known, and so is what inotify tells of it") {
  Watched watched;
  REQUIRE(watched.until([&] { return watched.priority_of("default/web-n1") == 1; }));
  CHECK(watched.source.status().state == State::Synced);
  watched.tree.write("manifests/web.yaml", manifest("web", 2));
  CHECK(watched.until([&] { return watched.priority_of("default/web-n1") == 2; }));
  watched.tree.add("manifests", fixture::file("db.yaml", manifest("db", 3)));
  CHECK(watched.until([&] { return watched.priority_of("default/db-n1") == 3; }));
  watched.tree.remove("manifests/web.yaml");
  CHECK(watched.until([&] { return !watched.priority_of("default/web-n1"); }));
  CHECK(watched.source.status().pods == 1);
  CHECK(watched.told.empty());
}

TEST_CASE("a file that is no good is told once, and what it said before holds") {
  Watched watched;
  REQUIRE(watched.until([&] { return watched.changes == 1; }));
  watched.tree.write("manifests/web.yaml", "metadata: {name: web}\nspec: {containers: 7}\n");
  REQUIRE(watched.until([&] { return !watched.told.empty(); }));
  CHECK(watched.told.front().find("web.yaml:2: spec.containers: ") != std::string::npos);
  watched.tree.add("manifests", fixture::file("db.yaml", manifest("db", 3)));
  REQUIRE(watched.until([&] { return watched.priority_of("default/db-n1").has_value(); }));
  CHECK(watched.told.size() == 1);
  CHECK(watched.priority_of("default/web-n1") == 1);
  CHECK(watched.source.status().state == State::Synced);
  CHECK(watched.source.status().error == watched.told.front());
}

TEST_CASE("a directory that vanishes makes the source stale, and takes nothing of what it said") {
  Watched watched;
  REQUIRE(watched.until([&] { return watched.changes == 1; }));
  watched.tree.remove("manifests");
  REQUIRE(watched.until([&] { return watched.source.status().state == State::Stale; }));
  CHECK(watched.source.status().error.find("cannot be listed: No such file or directory") != std::string::npos);
  CHECK(watched.source.status().stale_since.has_value());
  CHECK(watched.told.size() == 1);
  CHECK(watched.priority_of("default/web-n1") == 1);
  // Nobody calls look() for a directory that comes back: it is looked for.
  watched.tree.add("", fixture::dir("manifests", {fixture::file("web.yaml", manifest("web", 5))}));
  CHECK(watched.until([&] { return watched.priority_of("default/web-n1") == 5; }));
  CHECK(watched.source.status().state == State::Synced);
}

TEST_CASE("a directory whose disk does not answer makes the source stale, until it does") {
  const fixture::Tree tree{{fixture::file("web.yaml", manifest("web", 1))}};
  asio::io_context reactor{1};
  asio::thread_pool pool{1};
  std::promise<void> answer;
  asio::post(pool, [&] { answer.get_future().wait(); });
  ManifestSource source{
      reactor.get_executor(), pool.get_executor(), {.directory = tree.path(), .node_name = "n1", .patience = 10ms}};
  test::HeardSpecs heard;
  source.start(heard);
  const auto state = [&] { return source.status().state; };
  CHECK(test::run_until(reactor, [&] { return state() == State::Stale; }));
  CHECK(source.status().error.find("its disk does not answer") != std::string::npos);
  answer.set_value();
  CHECK(test::run_until(reactor, [&] { return state() == State::Synced; }));
  CHECK(source.status().pods == 1);
  pool.join();
}

TEST_CASE("a source may go while a look is under way") {
  fixture::Tree tree;
  asio::io_context reactor{1};
  asio::thread_pool pool{1};
  test::HeardSpecs heard;
  {
    ManifestSource source{reactor.get_executor(), pool.get_executor(), {.directory = tree.path(), .node_name = "n1"}};
    source.start(heard);
    source.look();
  }
  pool.join();
  reactor.run();
  CHECK(heard.changes == 0);
}

}  // namespace evictd::pods::manifest_source_test
