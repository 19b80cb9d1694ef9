#include "wake/directory_watch.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <fstream>

#include "fixture/tree.hpp"

namespace evictd::wake {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Watched {
  fixture::Tree tree{{fixture::dir("images", {fixture::file("metadata.db", "x")})}};
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  int changes = 0;
  DirectoryWatch watch{reactor.get_executor(),
                       wakes,
                       {.name = "images", .detail = "images came or went", .interval = 1ms},
                       [this](const Arming& arming) {
                         return std::vector<fs::path>{arming.images, tree.path("images/snapshots")};
                       },
                       [this] { ++changes; }};

  Watched() { arm(); }
  void arm() {
    Arming arming;
    arming.images = tree.path("images");
    watch.arm(arming);
  }
  int news() {
    reactor.restart();
    reactor.run_for(100ms);
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
                       {.name = "configuration", .detail = "changed", .interval = 1ms, .names = {"agent.yaml"}},
                       [&](const Arming&) { return std::vector<fs::path>{tree.path()}; },
                       [&] { ++changes; }};
  watch.arm({});
  std::ofstream{tree.path("log")} << "x";
  reactor.run_for(100ms);
  CHECK(changes == 0);
  std::ofstream{tree.path("agent.yaml")} << "x";
  reactor.restart();
  reactor.run_for(100ms);
  CHECK(changes >= 1);
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

}  // namespace evictd::wake
