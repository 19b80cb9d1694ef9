#include "node/pod_disk.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "async/worker.hpp"
#include "fixture/tree.hpp"

namespace evictd::node::pod_disk_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Tree;

PodName pod(const std::string& uid) { return {.uid = uid, .name_space = "ns", .name = "p"}; }

std::vector<std::string> uids(const std::vector<PodName>& pods) {
  std::vector<std::string> result;
  for (const auto& each : pods) result.push_back(each.uid);
  return result;
}

/// Work goes to a pool that the test runs, or holds up.
class PoolWorker final : public async::Worker {
 public:
  PoolWorker(asio::any_io_executor reactor, asio::any_io_executor pool)
      : reactor_{std::move(reactor)}, pool_{std::move(pool)} {}
  void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
    asio::post(pool_, [reactor = reactor_, work = std::move(work), done = std::move(done)]() mutable {
      work();
      asio::post(reactor, std::move(done));
    });
  }

 private:
  asio::any_io_executor reactor_;
  asio::any_io_executor pool_;
};

/// Workers that do nothing until they are told.
struct HeldWorkers {
  struct Job {
    std::move_only_function<void()> work;
    std::move_only_function<void()> done;
  };
  struct Held final : async::Worker {
    explicit Held(std::shared_ptr<std::deque<Job>> given) : jobs{std::move(given)} {}
    void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
      jobs->push_back({std::move(work), std::move(done)});
    }
    std::shared_ptr<std::deque<Job>> jobs;
  };

  [[nodiscard]] PodDisk::MakeWorker maker() {
    return [this] {
      made.push_back(std::make_shared<std::deque<Job>>());
      return std::make_unique<Held>(made.back());
    };
  }
  void let_go(std::size_t worker) const {
    auto job = std::move(made.at(worker)->front());
    made.at(worker)->pop_front();
    job.work();
    job.done();
  }

  std::vector<std::shared_ptr<std::deque<Job>>> made;
};

/// A node with the pods "a" and "b", a pool of one thread, and a reactor that runs when told.
struct Node {
  Node() = default;
  ~Node() {
    gate.reset();
    disk.reset();
    pool.join();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void spawn(std::vector<PodName> pods) {
    ++running;
    asio::co_spawn(reactor, disk->measure(std::move(pods)), [this](const std::exception_ptr& error) {
      if (error) std::rethrow_exception(error);
      --running;
    });
  }
  /// Runs the reactor until everything spawned has ended.
  void run() {
    reactor.restart();
    while (running > 0)
      if (reactor.run_one_for(10s) == 0) throw std::runtime_error("a measuring does not end");
  }
  void run_until_known(std::string_view uid) {
    while (!disk->known(uid))
      if (reactor.run_one_for(10s) == 0) throw std::runtime_error("a measuring does not end");
  }
  /// Runs what is ready, and nothing that the pool has yet to find out.
  void poll() {
    reactor.restart();
    reactor.poll();
  }
  /// Walks of a pool that runs when told, until nothing is left to walk; how many turns that took.
  std::size_t finish(asio::io_context& walkers) {
    std::size_t turns = 0;
    for (std::size_t ran = 1; ran > 0; turns += ran) {
      poll();
      walkers.restart();
      ran = walkers.poll();
    }
    return turns;
  }
  void use(const asio::any_io_executor& walkers, PodDiskSettings with) {
    disk.emplace(reactor.get_executor(), maker(walkers), std::move(with));
  }
  PodDisk::MakeWorker maker(asio::any_io_executor walkers) {
    return
        [this, walkers = std::move(walkers)] { return std::make_unique<PoolWorker>(reactor.get_executor(), walkers); };
  }
  void measure(std::vector<PodName> pods) {
    spawn(std::move(pods));
    run();
  }
  /// From now on walks wait for open_gate().
  void close_gate() {
    gate.emplace();
    asio::post(pool, [opened = gate->get_future().share()] { opened.wait(); });
  }
  void open_gate() { gate->set_value(), gate.reset(); }

  [[nodiscard]] PodDiskSettings settings() const {
    return {.roots = {.logs = tree.path("logs"), .kubelet = tree.path("kubelet")}};
  }
  [[nodiscard]] std::int64_t inodes(std::string_view uid) const { return *disk->known(uid)->logs.at("c").inodes; }

  Tree tree{std::vector{dir("logs", {dir("ns_p_a", {dir("c", {file("0.log", "x")})}), dir("ns_p_b", {dir("c")})}),
                        dir("kubelet")}};
  asio::io_context reactor{1};
  asio::thread_pool pool{1};
  std::optional<std::promise<void>> gate;
  int running = 0;
  std::optional<PodDisk> disk{std::in_place, reactor.get_executor(), maker(pool.get_executor()), settings()};
};

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
