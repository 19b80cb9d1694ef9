#include "wake/directory_watch.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/worker.hpp"
#include "cri/run.hpp"
#include "fixture/tree.hpp"
#include "wake/heard_sources.hpp"

namespace evictd::wake::directory_watch_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// Does everything at once.
struct InlineWorker final : async::Worker {
  void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
    work();
    done();
  }
};

struct Watched {
  fixture::Tree tree{{fixture::dir("images", {fixture::file("metadata.db", "x")})}};
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  int changes = 0;
  DirectoryWatch watch{
      reactor.get_executor(),
      wakes,
      {.source = core::WakeSource::Images,
       .detail = "images came or went",
       .interval = 1ms,
       .worker = std::make_shared<InlineWorker>()},
      [this](const Arming& arming) { return std::vector<fs::path>{arming.images, tree.path("images/snapshots")}; },
      [this] { ++changes; }};

  Watched() {
    arm();
    changes = 0;
  }
  void arm() {
    Arming arming;
    arming.images = tree.path("images");
    watch.arm(arming);
  }
  int news() {
    reactor.restart();
    reactor.run_for(100ms);
    reactor.poll();  // where this thread had no processor for so long
    return std::exchange(changes, 0);
  }
};

}  // namespace

TEST_CASE("a change in a directory is told, one below it is not") {
  Watched watched;
  CHECK(watched.news() == 0);
  std::ofstream{watched.tree.path("images/metadata.db"), std::ios::app} << "more";
  CHECK(watched.news() >= 1);
  const auto status = watched.watch.status().front();
  CHECK(status.name == "images");
  CHECK(status.state == "armed");
  CHECK(status.wakes >= 1);
  CHECK(status.detail == watched.tree.path("images").native());
}

TEST_CASE("where names are given, nothing else in the directory matters") {
  fixture::Tree tree;
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  int changes = 0;
  DirectoryWatch watch{reactor.get_executor(),
                       wakes,
                       {.source = core::WakeSource::Configuration,
                        .detail = "changed",
                        .interval = 1ms,
                        .matters = [](std::string_view name) { return name == "agent.yaml"; },
                        .worker = std::make_shared<InlineWorker>()},
                       [&](const Arming&) { return std::vector<fs::path>{tree.path()}; },
                       [&] { ++changes; }};
  watch.arm({});
  changes = 0;
  std::ofstream{tree.path("log")} << "x";
  reactor.run_for(100ms);
  CHECK(changes == 0);
  std::ofstream{tree.path("agent.yaml")} << "x";
  reactor.restart();
  reactor.run_for(100ms);
  CHECK(changes >= 1);
}

TEST_CASE("a file that is read whole is told of once it is: neither empty nor missing while it is written anew") {
  fixture::Tree tree{{fixture::file("agent.yaml", "x")}};
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  std::vector<std::string> read;
  DirectoryWatch watch{reactor.get_executor(),
                       wakes,
                       {.source = core::WakeSource::Configuration,
                        .detail = "changed",
                        .interval = 1ms,
                        .settle = 1500ms,
                        .worker = std::make_shared<InlineWorker>()},
                       [&](const Arming&) { return std::vector<fs::path>{tree.path()}; },
                       [&] { std::ifstream{tree.path("agent.yaml")} >> read.emplace_back(); }};
  watch.arm({});
  read.clear();

  SUBCASE("in its place") {
    std::ofstream file{tree.path("agent.yaml")};
    reactor.run_for(3s);
    file << "y";
  }
  SUBCASE("after others, and emptied first") {
    for (const char* text : {"z", "", "y"}) {
      std::ofstream{tree.path("agent.yaml")} << text;
      reactor.run_for(1s);
    }
  }
  SUBCASE("by an editor that keeps the old one under another name") {
    fs::rename(tree.path("agent.yaml"), tree.path("agent.yaml~"));
    reactor.run_for(20ms);
    std::ofstream{tree.path("agent.yaml")} << "y";
  }
  CHECK(read.empty());
  REQUIRE(test::run_until(reactor, [&] { return !read.empty(); }));
  CHECK(read.front() == "y");
}

TEST_CASE("a directory that is made later is watched from the next arming on") {
  Watched watched;
  fs::create_directory(watched.tree.path("images/snapshots"));
  CHECK(watched.news() >= 1);
  watched.arm();
  fs::create_directory(watched.tree.path("images/snapshots/1"));
  CHECK(watched.news() >= 1);
  fs::remove_all(watched.tree.path("images/snapshots"));
  watched.news();
  CHECK(watched.watch.status().front().detail == watched.tree.path("images").native());
}

TEST_CASE("a directory that comes later is a change, for it may have been filled before it was watched") {
  Watched watched;
  watched.tree.add("images", fixture::dir("snapshots", {fixture::file("1", "x")}));
  (void)watched.news();  // of "images", in which something came
  watched.arm();
  CHECK(watched.news() == 1);
  watched.arm();
  CHECK(watched.news() == 0);
}

TEST_CASE("a directory that was removed and made again meanwhile is a change, whatever was put into it") {
  fixture::Tree tree{{fixture::dir("etc", {fixture::file("agent.yaml", "x")})}};
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  int changes = 0;
  DirectoryWatch watch{reactor.get_executor(),
                       wakes,
                       {.source = core::WakeSource::Configuration,
                        .detail = "changed",
                        .interval = 1ms,
                        .matters = [](std::string_view name) { return name == "agent.yaml"; },
                        .worker = std::make_shared<InlineWorker>()},
                       [&](const Arming&) { return std::vector<fs::path>{tree.path("etc")}; },
                       [&] { ++changes; }};
  watch.arm({});
  fs::remove_all(tree.path("etc"));
  reactor.run_for(100ms);
  reactor.poll();
  tree.add("", fixture::dir("etc", {fixture::file("agent.yaml", "y")}));
  changes = 0;
  watch.arm({});
  CHECK(changes == 1);
}

TEST_CASE("a directory that was renamed makes way for the one that has its name now") {
  Watched watched;
  fs::rename(watched.tree.path("images"), watched.tree.path("was"));
  watched.tree.add("", fixture::dir("images"));
  CHECK(watched.news() >= 1);
  watched.arm();
  (void)watched.news();
  std::ofstream{watched.tree.path("was/file")} << "x";
  CHECK(watched.news() == 0);
  std::ofstream{watched.tree.path("images/file")} << "x";
  CHECK(watched.news() >= 1);
}

TEST_CASE("a directory that went before it was looked for is a change: who reads it may have found it still there") {
  fixture::Tree tree{{fixture::dir("manifests")}};
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  int changes = 0;
  DirectoryWatch watch{reactor.get_executor(),
                       wakes,
                       {.source = core::WakeSource::Manifests,
                        .detail = "changed",
                        .interval = 1ms,
                        .worker = std::make_shared<InlineWorker>()},
                       [&](const Arming&) { return std::vector<fs::path>{tree.path("manifests")}; },
                       [&] { ++changes; }};
  tree.remove("manifests");
  watch.arm({});
  CHECK(changes == 1);
  watch.arm({});
  CHECK(changes == 1);
}

TEST_CASE("a directory that cannot be watched is said and is in no other one's way") {
  fixture::Tree tree{{fixture::file("a", "no directory"), fixture::dir("b")}};
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  test::HeardSources heard;
  wakes.listen(heard);
  DirectoryWatch watch{reactor.get_executor(),
                       wakes,
                       {.source = core::WakeSource::Manifests,
                        .detail = "changed",
                        .interval = 1ms,
                        .worker = std::make_shared<InlineWorker>()},
                       [&](const Arming&) { return std::vector<fs::path>{tree.path("a"), tree.path("b")}; }};
  watch.arm({});
  watch.arm({});
  CHECK(heard.failures == std::vector<std::string>{tree.path("a").native() + ": Not a directory"});
  CHECK(watch.status().front().detail == tree.path("b").native());
}

TEST_CASE("a directory on a disk that does not answer holds up nobody, and is watched once it does") {
  struct HeldWorker final : async::Worker {
    void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
      jobs.emplace_back(std::move(work), std::move(done));
    }
    std::vector<std::pair<std::move_only_function<void()>, std::move_only_function<void()>>> jobs;
  };
  fixture::Tree tree{{fixture::dir("a"), fixture::dir("b")}};
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  const auto worker = std::make_shared<HeldWorker>();
  std::vector<fs::path> wanted{tree.path("a"), tree.path("b")};
  int changes = 0;
  std::optional<DirectoryWatch> watch{
      std::in_place,
      reactor.get_executor(),
      wakes,
      DirectoryWatchOptions{.source = core::WakeSource::Images, .detail = "y", .interval = 1ms, .worker = worker},
      [&](const Arming&) { return wanted; },
      [&] { ++changes; }};
  watch->arm({});
  watch->arm({});
  REQUIRE(worker->jobs.size() == 1);
  wanted = {tree.path("b")};
  watch->arm({});
  worker->jobs[0].first();
  CHECK(changes == 0);
  worker->jobs[0].second();
  CHECK(changes == 1);  // what was put into it meanwhile, nobody knows
  CHECK(watch->status().front().wakes == 0);
  CHECK(watch->status().front().detail == tree.path("b").native());
  std::ofstream{tree.path("a/file")} << "x";
  reactor.run_for(50ms);
  CHECK(changes == 1);
  std::ofstream{tree.path("b/file")} << "x";
  reactor.restart();
  reactor.run_for(100ms);
  CHECK(changes >= 2);

  wanted = {tree.path("a"), tree.path("b")};
  watch->arm({});
  REQUIRE(worker->jobs.size() == 2);
  worker->jobs[1].first();
  watch.reset();
  worker->jobs[1].second();
}

}  // namespace evictd::wake::directory_watch_test
