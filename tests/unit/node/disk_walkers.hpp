#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "async/worker.hpp"
#include "fixture/tree.hpp"
#include "node/pod_disk.hpp"

// Pods' directories that are walked when a test says so.

namespace evictd::test {

/// Work goes to a pool that the test runs, or holds up.
class PoolWorker final : public async::Worker {
 public:
  PoolWorker(boost::asio::any_io_executor reactor, boost::asio::any_io_executor pool)
      : reactor_{std::move(reactor)}, pool_{std::move(pool)} {}
  void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
    boost::asio::post(pool_, [reactor = reactor_, work = std::move(work), done = std::move(done)]() mutable {
      work();
      boost::asio::post(reactor, std::move(done));
    });
  }

 private:
  boost::asio::any_io_executor reactor_;
  boost::asio::any_io_executor pool_;
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

  [[nodiscard]] node::PodDisk::MakeWorker maker() {
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
struct WalkedNode {
  WalkedNode() = default;
  ~WalkedNode() {
    gate.reset();
    disk.reset();
    pool.join();
  }
  WalkedNode(const WalkedNode&) = delete;
  WalkedNode& operator=(const WalkedNode&) = delete;

  void spawn(std::vector<node::PodName> pods) {
    ++running;
    boost::asio::co_spawn(reactor, disk->measure(std::move(pods)), [this](const std::exception_ptr& error) {
      if (error) std::rethrow_exception(error);
      --running;
    });
  }
  /// Runs the reactor until everything spawned has ended.
  void run() {
    reactor.restart();
    while (running > 0)
      if (reactor.run_one_for(std::chrono::seconds(10)) == 0) throw std::runtime_error("a measuring does not end");
  }
  void run_until_known(std::string_view uid) {
    while (!disk->known(uid))
      if (reactor.run_one_for(std::chrono::seconds(10)) == 0) throw std::runtime_error("a measuring does not end");
  }
  /// Runs what is ready, and nothing that the pool has yet to find out.
  void poll() {
    reactor.restart();
    reactor.poll();
  }
  /// Walks of a pool that runs when told, until nothing is left to walk; how many turns that took.
  std::size_t finish(boost::asio::io_context& walkers) {
    std::size_t turns = 0;
    for (std::size_t ran = 1; ran > 0; turns += ran) {
      poll();
      walkers.restart();
      ran = walkers.poll();
    }
    return turns;
  }
  void use(const boost::asio::any_io_executor& walkers, node::PodDiskSettings with) {
    disk.emplace(reactor.get_executor(), maker(walkers), std::move(with));
  }
  node::PodDisk::MakeWorker maker(boost::asio::any_io_executor walkers) {
    return
        [this, walkers = std::move(walkers)] { return std::make_unique<PoolWorker>(reactor.get_executor(), walkers); };
  }
  void measure(std::vector<node::PodName> pods) {
    spawn(std::move(pods));
    run();
  }
  /// From now on walks wait for open_gate().
  void close_gate() {
    gate.emplace();
    boost::asio::post(pool, [opened = gate->get_future().share()] { opened.wait(); });
  }
  void open_gate() { gate->set_value(), gate.reset(); }

  [[nodiscard]] node::PodDiskSettings settings() const {
    return {.roots = {.logs = tree.path("logs"), .kubelet = tree.path("kubelet")}};
  }
  [[nodiscard]] std::int64_t inodes(std::string_view uid) const { return *disk->known(uid)->logs.at("c").inodes; }

  fixture::Tree tree{
      std::vector{fixture::dir("logs", {fixture::dir("ns_p_a", {fixture::dir("c", {fixture::file("0.log", "x")})}),
                                        fixture::dir("ns_p_b", {fixture::dir("c")})}),
                  fixture::dir("kubelet")}};
  boost::asio::io_context reactor{1};
  boost::asio::thread_pool pool{1};
  std::optional<std::promise<void>> gate;
  int running = 0;
  std::optional<node::PodDisk> disk{std::in_place, reactor.get_executor(), maker(pool.get_executor()), settings()};
};

}  // namespace evictd::test
