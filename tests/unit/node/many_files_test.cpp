// Many pods with many files, which share one worker's time and evictd's memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "node/disk_walkers.hpp"

namespace evictd::node::many_files_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using test::HeldWorkers;
using Node = test::WalkedNode;

PodName pod(const std::string& uid) { return {.uid = uid, .name_space = "ns", .name = "p"}; }

/// More pods, "p0" to "p9", with so many files each.
std::vector<PodName> ten_pods(const Node& node, int files) {
  std::vector<PodName> pods;
  for (int p = 0; p < 10; ++p) {
    pods.push_back(pod("p" + std::to_string(p)));
    const auto name = "ns_p_" + pods.back().uid;
    node.tree.add("logs", dir(name, {dir("c")}));
    for (int i = 0; i < files; ++i) node.tree.add("logs/" + name + "/c", file(std::to_string(i), ""));
  }
  return pods;
}

/// How many pods have directories that this process holds open.
std::size_t held_open() {
  std::set<std::string> pods;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto path = std::filesystem::read_symlink(entry, gone).native();
    if (const auto at = path.find("ns_p_"); at != std::string::npos)
      pods.insert(path.substr(at, path.find('/', at) - at));
  }
  return pods.size();
}

}  // namespace

TEST_CASE("whoever asks for many pods that take long goes on after one patience, not after one for each") {
  Node node;
  const auto ten = ten_pods(node, 1000);
  asio::io_context pool;
  auto settings = node.settings();
  settings.slice = 0s;
  settings.patience = 0s;
  node.use(pool.get_executor(), settings);
  node.spawn({ten.begin(), ten.end() - 1});
  node.spawn({ten.back()});  // who waits in the queue waits as well
  std::size_t turns = 0;
  for (; node.running > 0; turns += pool.poll_one()) {
    node.poll();
    pool.restart();
  }
  CHECK(turns <= 2);
  // Nobody ranks before all others for having no numbers, and nothing that was not seen counts as seen.
  for (const auto& each : ten) {
    CAPTURE(each.uid);
    REQUIRE(node.disk->known(each.uid));
    CHECK_FALSE(node.disk->known(each.uid)->complete);
  }
  CHECK(node.inodes("p0") > 1);
  CHECK(node.disk->known("p9")->logs.empty());
  node.finish(pool);
  for (const auto& each : ten) {
    CHECK(node.disk->known(each.uid)->complete);
    CHECK(node.inodes(each.uid) == 1001);
  }

  // What was once known whole stays known until all is known again.
  const auto all = node.disk->known("p9");
  node.spawn(ten);
  for (; node.running > 0; pool.poll_one()) {
    node.poll();
    pool.restart();
  }
  CHECK(node.disk->known("p9") == all);
  node.finish(pool);
  CHECK(node.disk->known("p9") != all);
}

TEST_CASE("whoever waits behind a walk that hangs goes on when patience is over") {
  Node node;
  HeldWorkers workers;
  auto settings = node.settings();
  settings.slice = 0s;
  settings.patience = 0s;
  settings.hang = 30ms;
  node.disk.emplace(node.reactor.get_executor(), workers.maker(), settings);
  node.spawn({pod("a"), pod("b")});
  node.run();
  CHECK(workers.made.size() == 2);
  CHECK(node.disk->is_out_of_reach("a"));
  CHECK_FALSE(node.disk->is_out_of_reach("b"));
  REQUIRE(node.disk->known("b"));
  CHECK_FALSE(node.disk->known("b")->complete);
  CHECK_FALSE(node.disk->known("a"));
}

TEST_CASE("of walks that are not over a few keep what they have seen, and each of them comes to its end") {
  Node node;
  const auto ten = ten_pods(node, 1000);
  asio::io_context pool;
  auto settings = node.settings();
  settings.slice = 0s;
  node.use(pool.get_executor(), settings);
  node.spawn(ten);
  std::size_t most = 0;
  std::size_t turns = 0;
  while (node.running > 0 && turns < 10'000) {
    node.poll();
    pool.restart();
    turns += pool.poll_one();
    most = std::max(most, held_open());
  }
  REQUIRE(node.running == 0);
  CHECK(most <= 3);
  for (const auto& each : ten) {
    CHECK(node.disk->known(each.uid)->complete);
    CHECK(node.inodes(each.uid) == 1001);
  }
}

TEST_CASE("however many trees are too large, a small one and one of some turns are soon known") {
  Node node;
  const auto ten = ten_pods(node, 3000);  // 48 turns each
  for (int i = 0; i < 200; ++i) node.tree.add("logs/ns_p_b/c", file(std::to_string(i), ""));
  asio::io_context pool;
  auto settings = node.settings();
  settings.slice = 0s;
  node.use(pool.get_executor(), settings);
  const auto turns_until = [&](const std::function<bool()>& done) {
    std::size_t turns = 0;
    for (; !done() && turns < 10'000; turns += pool.poll_one()) {
      node.poll();
      pool.restart();
    }
    return turns;
  };
  node.spawn(ten);
  std::size_t turns = 0;
  turns_until([&] { return turns++ == 40; });
  node.spawn({pod("a")});
  node.spawn({pod("b")});
  CHECK(turns_until([&] { return node.disk->known("a") != nullptr; }) <= 12);
  CHECK(turns_until([&] { return node.disk->known("b") != nullptr; }) <= 4 * 12);
  CHECK(node.disk->known("b")->complete);
  for (const auto& each : ten) CHECK_FALSE(node.disk->known(each.uid));
  node.finish(pool);
  for (const auto& each : ten) CHECK(node.disk->known(each.uid)->complete);
}

}  // namespace evictd::node::many_files_test
