#include "node/pod_disk.hpp"

#include <doctest/doctest.h>

#include "node/disk_walkers.hpp"

namespace evictd::node::pod_disk_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using test::HeldWorkers;
using Node = test::WalkedNode;

PodName pod(const std::string& uid) { return {.uid = uid, .name_space = "ns", .name = "p"}; }

std::vector<std::string> uids(const std::vector<PodName>& pods) {
  std::vector<std::string> result;
  for (const auto& each : pods) result.push_back(each.uid);
  return result;
}

}  // namespace

TEST_CASE("what was measured is known, and nothing is before") {
  Node node;
  CHECK_FALSE(node.disk->known("a"));
  node.measure({pod("a"), pod("b")});
  REQUIRE(node.disk->known("a"));
  CHECK(node.inodes("a") == 2);
  CHECK(node.inodes("b") == 1);
  CHECK_FALSE(node.disk->known("c"));
}

TEST_CASE("measuring nothing ends at once") {
  Node node;
  node.measure({});
  CHECK(node.running == 0);
}

TEST_CASE("a reading stays as it was for those who hold it") {
  Node node;
  node.measure({pod("a")});
  const auto held = node.disk->known("a");
  node.tree.add("logs/ns_p_a/c", file("1.log", "x"));
  node.measure({pod("a")});
  CHECK(held->logs.at("c").inodes == 2);
  CHECK(node.inodes("a") == 3);
}

TEST_CASE("pods are due when they are new, marked, or measured longer ago than the interval") {
  Node node;
  const std::vector pods{pod("a"), pod("b")};
  CHECK(uids(node.disk->due(pods, core::Instant{})) == std::vector<std::string>{"a", "b"});
  node.measure(pods);
  const auto measured = node.disk->known("b")->time;
  CHECK(node.disk->due(pods, measured).empty());
  node.disk->mark_dirty("a");
  CHECK(uids(node.disk->due(pods, measured)) == std::vector<std::string>{"a"});
  node.measure({pod("a")});
  CHECK(node.disk->due(pods, measured).empty());
  CHECK(uids(node.disk->due(pods, measured + 1min)).back() == "b");
  node.disk->mark_dirty("unknown");
  CHECK(node.disk->due(pods, measured).empty());
}

TEST_CASE("a pod that is being measured is not due and not walked twice") {
  Node node;
  asio::io_context pool;
  node.use(pool.get_executor(), node.settings());
  node.spawn({pod("a")});
  node.spawn({pod("a"), pod("a")});
  node.poll();
  CHECK(node.disk->due(std::vector{pod("a")}, core::Instant::clock::now()).empty());
  CHECK(node.running == 2);
  CHECK(pool.poll() == 1);
  node.run();
  CHECK(node.disk->known("a"));
}

TEST_CASE("a mark that comes during a walk makes the pod due again, and whoever asks then gets another walk") {
  Node node;
  node.close_gate();
  node.spawn({pod("a")});
  node.poll();
  node.disk->mark_dirty("a");
  CHECK(uids(node.disk->due(std::vector{pod("a")}, core::Instant{})) == std::vector<std::string>{"a"});
  node.spawn({pod("a")});
  node.poll();
  node.open_gate();
  node.run_until_known("a");
  const auto first = node.disk->known("a");
  CHECK(node.running == 2);
  node.run();
  CHECK(node.disk->known("a") != first);
  CHECK(node.disk->due(std::vector{pod("a")}, first->time).empty());
}

TEST_CASE("pods that are gone are forgotten, also while they are measured") {
  Node node;
  node.measure({pod("a"), pod("b")});
  node.close_gate();
  node.spawn({pod("b")});
  node.poll();
  node.disk->keep_only(std::vector{pod("a")});
  node.open_gate();
  node.run();
  CHECK(node.disk->known("a"));
  CHECK_FALSE(node.disk->known("b"));
}

TEST_CASE("those who wait go on when everything is taken down") {
  Node node;
  node.close_gate();
  node.spawn({pod("a")});
  node.poll();
  node.disk.reset();
  node.open_gate();
  node.run();
  CHECK(node.running == 0);
}

TEST_CASE("a pod with too many files keeps nobody waiting for longer than its turn") {
  Node node;
  for (int i = 0; i < 1000; ++i) node.tree.add("logs/ns_p_a/c", file(std::to_string(i), ""));
  asio::io_context pool;
  auto settings = node.settings();
  settings.slice = 0s;  // which is enough for some files each
  node.use(pool.get_executor(), settings);
  node.spawn({pod("a")});
  node.spawn({pod("b")});
  node.poll();
  CHECK(pool.poll_one() == 1);
  node.poll();
  pool.restart();
  CHECK(pool.poll_one() == 1);
  node.run_until_known("b");
  CHECK_FALSE(node.disk->known("a"));
  CHECK(node.inodes("b") == 1);
  CHECK(node.finish(pool) >= 10);
  node.run();
  CHECK(node.disk->known("a")->complete);
  CHECK(node.inodes("a") == 1002);
}

TEST_CASE("whoever waits for a pod that takes too long goes on with what was seen, and the walk goes on as well") {
  Node node;
  for (int i = 0; i < 1000; ++i) node.tree.add("logs/ns_p_a/c", file(std::to_string(i), ""));
  asio::io_context pool;
  auto settings = node.settings();
  settings.slice = 0s;
  settings.patience = 0s;
  node.use(pool.get_executor(), settings);
  node.spawn({pod("a")});
  node.poll();
  CHECK(pool.poll_one() == 1);
  node.run();
  const auto partial = node.disk->known("a");
  CHECK_FALSE(partial->complete);
  CHECK(node.inodes("a") > 1);
  CHECK(node.inodes("a") < 200);
  // Neither due nor waited for again meanwhile, also if it changes.
  node.disk->mark_dirty("a");
  CHECK(node.disk->due(std::vector{pod("a")}, core::Instant::clock::now() + 1h).empty());
  node.measure({pod("a")});
  CHECK(node.disk->known("a") == partial);
  node.finish(pool);
  CHECK(node.disk->known("a")->complete);
  CHECK(node.inodes("a") == 1002);
  CHECK(uids(node.disk->due(std::vector{pod("a")}, core::Instant::clock::now())) == std::vector<std::string>{"a"});

  // From now on more is known than a part, until all is known again.
  const auto all = node.disk->known("a");
  node.tree.add("logs/ns_p_a/c", file("one more", ""));
  node.spawn({pod("a")});
  node.poll();
  pool.restart();
  CHECK(pool.poll_one() == 1);
  node.run();
  CHECK(node.disk->known("a") == all);
  node.finish(pool);
  CHECK(node.inodes("a") == 1003);
}

TEST_CASE("a walk ends with the most entries that are looked at, or when its pod is forgotten") {
  Node node;
  for (int i = 0; i < 1000; ++i) node.tree.add("logs/ns_p_a/c", file(std::to_string(i), ""));
  asio::io_context pool;
  auto settings = node.settings();
  settings.slice = 0s;
  settings.max_entries = 300;
  node.use(pool.get_executor(), settings);
  node.spawn({pod("a")});
  node.finish(pool);
  node.run();
  CHECK_FALSE(node.disk->known("a")->complete);
  CHECK(node.inodes("a") == 301);

  settings.max_entries = 1'000'000;
  node.use(pool.get_executor(), settings);
  pool.restart();
  node.spawn({pod("a")});
  node.poll();
  CHECK(pool.poll_one() == 1);
  node.disk->keep_only({});
  CHECK(node.finish(pool) == 1);
  node.run();
  CHECK_FALSE(node.disk->known("a"));
}

TEST_CASE("a walk that hangs is given up with its worker, and the others are measured without that pod") {
  Node node;
  HeldWorkers workers;
  auto settings = node.settings();
  settings.slice = 0s;
  settings.hang = 30ms;
  node.disk.emplace(node.reactor.get_executor(), workers.maker(), settings);
  node.spawn({pod("a"), pod("b")});
  while (workers.made.size() < 2) REQUIRE(node.reactor.run_one_for(10s) > 0);
  CHECK(node.running == 1);
  CHECK(node.disk->is_out_of_reach("a"));
  CHECK_FALSE(node.disk->is_out_of_reach("b"));
  workers.let_go(1);
  node.run();
  CHECK(node.disk->known("b"));
  CHECK_FALSE(node.disk->known("a"));

  // It is neither due nor waited for, also if it is marked, while the call hangs.
  node.disk->mark_dirty("a");
  CHECK(node.disk->due(std::vector{pod("a")}, core::Instant::clock::now() + 1h).empty());
  node.measure({pod("a")});
  CHECK(workers.made.size() == 2);

  workers.let_go(0);
  CHECK_FALSE(node.disk->is_out_of_reach("a"));
  CHECK(uids(node.disk->due(std::vector{pod("a")}, core::Instant::clock::now())) == std::vector<std::string>{"a"});
  node.spawn({pod("a")});
  node.poll();
  while (node.running > 0) {
    if (!workers.made[1]->empty()) workers.let_go(1);
    node.poll();
  }
  CHECK(node.inodes("a") == 2);
}

TEST_CASE("with too many walks that hang others are refused, until one returns") {
  Node node;
  node.tree.add("logs", dir("ns_p_c", {dir("c")}));
  HeldWorkers workers;
  auto settings = node.settings();
  settings.slice = 0s;
  settings.hang = 30ms;
  settings.most_given_up = 2;
  node.disk.emplace(node.reactor.get_executor(), workers.maker(), settings);
  node.spawn({pod("c")});
  node.poll();
  while (node.running > 0) {
    if (!workers.made[0]->empty()) workers.let_go(0);
    node.poll();
  }
  const auto known = node.disk->known("c");
  node.measure({pod("a"), pod("b"), pod("c"), pod("d")});
  CHECK(workers.made.size() == 2);
  for (const auto* uid : {"a", "b", "d"}) CHECK(node.disk->is_out_of_reach(uid));
  CHECK_FALSE(node.disk->is_out_of_reach("c"));  // what it held is known
  CHECK(node.disk->known("c") == known);
  node.measure({pod("d")});
  CHECK(workers.made.size() == 2);

  workers.let_go(1);
  node.spawn({pod("d")});
  node.poll();
  CHECK(workers.made.size() == 3);
  while (node.running > 0) {
    if (!workers.made[2]->empty()) workers.let_go(2);
    node.poll();
  }
  CHECK(node.disk->known("d"));
  CHECK_FALSE(node.disk->is_out_of_reach("d"));
}

TEST_CASE("those who wait for a walk that hangs go on when everything is taken down") {
  Node node;
  HeldWorkers workers;
  node.disk.emplace(node.reactor.get_executor(), workers.maker(), node.settings());
  node.spawn({pod("a"), pod("b")});
  node.poll();
  node.disk.reset();
  node.run();
  CHECK(node.running == 0);
}

}  // namespace evictd::node::pod_disk_test
