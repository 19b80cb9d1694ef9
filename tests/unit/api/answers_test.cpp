#include "api/answers.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cri/run.hpp"
#include "events/event_log.hpp"

namespace evictd::api::answers_test {
namespace {

/// A node that admits every pod, for which others have to do something before it is decided, and after that, and a disk
/// once all are.
class Node final : public events::StatusSource, public Admitter, public Auditor {
 public:
  int asked = 0;                      ///< how often others were
  int held_at = 0;                    ///< at which of these times they do not answer
  int decided = 0;                    ///< pods
  std::size_t saved_at_once = 0;      ///< pods
  int tasks = 0;                      ///< that are there
  std::vector<bool> kept;             ///< of each task that has gone: whether it was told to keep what it reserved
  std::vector<std::string> outcomes;  ///< of calls, as they are told of

  v1::NodeStatus status() override { return {}; }
  [[nodiscard]] std::int64_t memory_capacity() const override { return std::int64_t{1} << 30; }
  std::unique_ptr<AdmissionTask> admit(AdmissionRequestsPtr /*pods*/, bool /*reserve*/) override {
    return std::make_unique<Task>(*this);
  }
  void audit(const v1::Audit& audit) override { outcomes.push_back(audit.outcome()); }

 private:
  class Task final : public AdmissionTask {
   public:
    explicit Task(Node& node) : node_(node) { ++node_.tasks; }
    ~Task() override {
      --node_.tasks;
      node_.kept.push_back(is_kept_);
    }
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

    Result<std::vector<v1::AdmitResponse>> decide_some() override {
      ++node_.decided;
      return std::vector<v1::AdmitResponse>(1);
    }
    void when_room(std::function<void()> /*wake*/) override {}
    [[nodiscard]] bool asks_others() const override { return true; }
    boost::asio::awaitable<void> prepare(const Departure& /*departure*/) override { return ask(); }
    boost::asio::awaitable<void> carry_out(std::vector<v1::AdmitResponse>& /*decided*/) override { return ask(); }
    [[nodiscard]] bool has_to_save() const override { return true; }
    boost::asio::awaitable<void> save(std::vector<v1::AdmitResponse>& answers) override {
      node_.saved_at_once = answers.size();
      return ask();
    }
    void keep() override { is_kept_ = true; }

   private:
    boost::asio::awaitable<void> ask() {
      const int time = ++node_.asked;
      boost::asio::steady_timer soon{co_await boost::asio::this_coro::executor};
      while (node_.held_at == time) {
        soon.expires_after(std::chrono::milliseconds{1});
        co_await soon.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
      }
    }

    Node& node_;
    bool is_kept_ = false;
  };
};

/// An AdmitBatch with `reserve` about two pods, for which others are asked four times, and then the disk. It is under
/// way until they do not answer.
struct Scene {
  explicit Scene(int held_at) {
    node.held_at = held_at;
    v1::AdmitBatchRequest request;
    for (const std::string name : {"a", "b"})
      request.add_pods("{kind: Pod, metadata: {name: " + name + "}, spec: {containers: [{name: c}]}}");
    request.set_reserve(true);
    using Batch = Asked<v1::AdmitBatchRequest, v1::AdmitBatchResponse>;
    const auto batch = std::make_shared<const Batch>(Batch{
        .caller = {}, .allowed = grpc::Status::OK, .request = std::move(request), .call = {}, .departure = departure});
    boost::asio::co_spawn(reactor, answers.admit_batch(batch), [this](const std::exception_ptr&) { is_over = true; });
    REQUIRE(test::run_until(reactor, [&] { return node.asked == held_at; }));
    CHECK(node.kept.empty());
  }
  void finish() {
    node.held_at = 0;
    REQUIRE(test::run_until(reactor, [this] { return is_over; }));
    CHECK(node.tasks == 0);
  }

  boost::asio::io_context reactor{1};
  events::EventLog log{reactor.get_executor()};
  Node node;
  std::shared_ptr<Departure> departure = std::make_shared<Departure>();
  Answers answers{log, Handlers{.status = node, .admitter = &node, .auditor = &node}, reactor.get_executor()};
  bool is_over = false;
};

}  // namespace

TEST_CASE("what was reserved is kept once all is answered and written, and not before") {
  Scene scene{5};
  scene.finish();
  CHECK(scene.node.decided == 2);
  CHECK(scene.node.saved_at_once == 2);
  CHECK(scene.node.kept == std::vector{true});
  CHECK(scene.node.outcomes == std::vector<std::string>{"done"});
}

TEST_CASE("a client that leaves while others are asked has nothing kept, and nothing more is done for it") {
  for (const int held_at : {1, 2, 3, 4, 5}) {
    CAPTURE(held_at);
    Scene scene{held_at};
    scene.departure->leave();
    scene.finish();
    CHECK(scene.node.asked == held_at);
    CHECK(scene.node.decided == held_at / 2);
    CHECK(scene.node.kept == std::vector{false});
    CHECK(scene.node.outcomes == std::vector<std::string>{"CANCELLED: the client went away"});
  }
}

TEST_CASE("of a client that has left no text is read") {
  boost::asio::io_context reactor{1};
  boost::asio::io_context readers{1};
  events::EventLog log{reactor.get_executor()};
  Node node;
  Answers answers{log, Handlers{.status = node, .admitter = &node, .auditor = &node}, readers.get_executor()};
  const auto departure = std::make_shared<Departure>();
  v1::AdmitRequest request;
  request.set_pod("kind: Node");
  request.set_reserve(true);
  using Single = Asked<v1::AdmitRequest, v1::AdmitResponse>;
  const auto single = std::make_shared<const Single>(Single{
      .caller = {}, .allowed = grpc::Status::OK, .request = std::move(request), .call = {}, .departure = departure});
  bool is_over = false;
  boost::asio::co_spawn(reactor, answers.admit(single), [&](const std::exception_ptr&) { is_over = true; });
  reactor.poll();
  departure->leave();
  REQUIRE(test::run_until(reactor, [&] {
    readers.poll();
    return is_over;
  }));
  CHECK(node.outcomes == std::vector<std::string>{"CANCELLED: the client went away"});
}

TEST_CASE("nothing is kept where all was stopped while others were asked") {
  for (const int held_at : {1, 2, 3, 4, 5}) {
    CAPTURE(held_at);
    Scene scene{held_at};
    scene.answers.stop();
    scene.finish();
    CHECK(scene.node.kept == std::vector{false});
    CHECK(scene.node.outcomes == std::vector<std::string>{"UNAVAILABLE: evictd shuts down"});
  }
}

}  // namespace evictd::api::answers_test
