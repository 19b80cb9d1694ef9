// More calls than there is time for.
#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <list>
#include <mutex>

#include "api/raw_call.hpp"
#include "api/running_server.hpp"

namespace evictd::api::flood_test {
namespace {

using test::Client;
using test::eventually;
using test::Reactor;
using test::TemporaryDirectory;

constexpr int pods_in_batch = 16;

/// What the reactor does, turn by turn.
struct Turns {
  bool other_ran = true;  // since the last turn of a call
  std::size_t of_calls = 0;
  std::size_t without_others = 0;  // turns of calls between which nothing else ran, though it was waiting
};

/// Admits one pod a turn.
class OneByOne final : public AdmissionTask {
 public:
  OneByOne(AdmissionRequestsPtr pods, Turns& turns) : pods_(std::move(pods)), turns_(turns) {}
  Result<std::vector<v1::AdmitResponse>> decide_some() override {
    ++turns_.of_calls;
    if (!std::exchange(turns_.other_ran, false)) ++turns_.without_others;
    std::vector<v1::AdmitResponse> answers(1);
    answers[0].mutable_pod()->set_name((*pods_)[next_++].pod.name);
    return answers;
  }
  void when_room(std::function<void()>) override {}

 private:
  AdmissionRequestsPtr pods_;
  Turns& turns_;
  std::size_t next_ = 0;
};

class Flooded final : events::StatusSource, Admitter {
 public:
  Flooded() {
    server_ = std::make_unique<Server>(ServerOptions{.socket = socket, .admin_socket = admin_socket}, log_,
                                       Handlers{.status = *this, .admitter = this});
    REQUIRE(reactor.run([&] { return server_->start().has_value(); }));
    reactor.run([this] { go_on(); });
  }
  ~Flooded() {
    reactor.run([this] {
      stopped_ = true;
      server_.reset();
    });
    reactor.stop();
  }

 private:
  v1::NodeStatus status() override { return {}; }
  [[nodiscard]] std::int64_t memory_capacity() const override { return std::int64_t{1} << 30; }
  std::unique_ptr<AdmissionTask> admit(AdmissionRequestsPtr pods, bool /*reserve*/) override {
    return std::make_unique<OneByOne>(std::move(pods), turns);
  }

  TemporaryDirectory directory_;

 public:
  const std::string socket = directory_ / "evictd.sock";
  const std::string admin_socket = directory_ / "admin.sock";
  Turns turns;  // of the reactor
  Reactor reactor;

 private:
  /// There is always something else to do.
  void go_on() {
    turns.other_ran = true;
    if (!stopped_) boost::asio::post(reactor.context, [this] { go_on(); });
  }

  events::EventLog log_{reactor.context.get_executor()};
  std::unique_ptr<Server> server_;
  bool stopped_ = false;
};

/// An AdmitBatch under way.
struct Asking {
  /// `more`: what stands in each text beside the pod.
  explicit Asking(const Client& client, const std::string& more = "") {
    for (int i = 0; i < pods_in_batch; ++i)
      request.add_pods("{kind: Pod, metadata: {name: p" + std::to_string(i) + "}, spec: {containers: [{name: c}]}" +
                       more + "}");
    context.set_deadline(std::chrono::system_clock::now() + test::patience);
    client.stub->async()->AdmitBatch(&context, &request, &response, [this](grpc::Status given) {
      status = std::move(given);
      code = status.error_code();
      done.set_value();
    });
  }

  grpc::ClientContext context;
  v1::AdmitBatchRequest request;
  v1::AdmitBatchResponse response;
  grpc::Status status;
  std::atomic<int> code = -1;  // since it is over
  std::promise<void> done;
};

}  // namespace

TEST_CASE("whatever else waits on the reactor runs between two turns of calls, and a batch takes many turns") {
  Flooded flooded;
  const Client client(flooded.socket);
  std::list<Asking> calls;
  for (int i = 0; i < 30; ++i) calls.emplace_back(client);
  for (auto& call : calls) {
    call.done.get_future().wait();
    REQUIRE_MESSAGE(call.status.ok(), call.status.error_message());
    REQUIRE(call.response.answers_size() == pods_in_batch);
    for (int i = 0; i < pods_in_batch; ++i) CHECK(call.response.answers(i).pod().name() == "p" + std::to_string(i));
  }
  const auto turns = flooded.reactor.run([&] { return flooded.turns; });
  CHECK(turns.of_calls == calls.size() * pods_in_batch);
  CHECK(turns.without_others == 0);
}

TEST_CASE("calls beyond the limit of a caller are refused at once, and health is told all the while") {
  Flooded flooded;
  std::list<Client> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(flooded.socket);
  std::promise<void> release;
  boost::asio::post(flooded.reactor.context, [&] { release.get_future().wait(); });
  std::list<Asking> calls;
  for (const auto& client : clients)
    for (int i = 0; i < 100; ++i) calls.emplace_back(client);
  std::size_t refused = 0;
  CHECK(eventually([&] {
    refused = static_cast<std::size_t>(std::ranges::count_if(
        calls, [](auto& call) { return call.status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED; }));
    return refused > 0;
  }));
  CHECK(test::raw_call(clients.front().channel, "/grpc.health.v1.Health/Check", "").bytes == "\x08\x02");
  release.set_value();
  std::size_t answered = 0;
  for (auto& call : calls) {
    call.done.get_future().wait();
    if (call.status.ok()) ++answered;
    if (call.status.ok()) continue;
    CHECK(call.status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
    CHECK(call.status.error_message() == "too many calls are being answered already: try again when some are");
  }
  CHECK(answered > 50);
}

TEST_CASE("a flood of large texts on one way in holds up nobody who comes by another") {
  Flooded flooded;
  const Client client(flooded.socket);
  const Client admin(flooded.admin_socket);
  std::string large = ", x: [";
  while (large.size() < 20'000) large += "x, ";
  std::list<Asking> calls;
  for (int i = 0; i < 10; ++i) calls.emplace_back(client, large + "]");
  CHECK(eventually([&] { return std::ranges::any_of(calls, [](auto& call) { return call.code == 0; }); }));
  Asking of_admin(admin);
  of_admin.done.get_future().wait();
  CHECK_MESSAGE(of_admin.status.ok(), of_admin.status.error_message());
  CHECK(std::ranges::any_of(calls, [](auto& call) { return call.code == -1; }));
  for (auto& call : calls) call.context.TryCancel();
  for (auto& call : calls) call.done.get_future().wait();
}

}  // namespace evictd::api::flood_test
