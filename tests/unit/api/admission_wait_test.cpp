// Admissions for which others have to make room first, or are asked.
#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/running_server.hpp"

namespace evictd::api::admission_wait_test {
namespace {

using test::Client;
using test::eventually;
using test::Reactor;
using test::TemporaryDirectory;

/// A server that admits each pod once the test has made room for it.
class Crowded final : events::StatusSource, Admitter, Auditor {
 public:
  Crowded() {
    server_ = std::make_unique<Server>(ServerOptions{.socket = "", .admin_socket = socket}, log_,
                                       Handlers{.status = *this, .admitter = this, .auditor = this});
    REQUIRE(reactor_.run([&] { return server_->start().has_value(); }));
  }
  ~Crowded() {
    stop();
    reactor_.stop();
  }

  void stop() {
    reactor_.run([this] {
      server_.reset();
      others_are_silent_ = false;
    });
  }
  /// Others are asked about every pod, and say nothing until this ends.
  void silence_others(bool on) {
    reactor_.run([&] { others_are_silent_ = on; });
  }
  /// For so many pods that wait, or will.
  void make_room(int pods) {
    reactor_.run([&] {
      room_ += pods;
      for (const auto& wake : std::exchange(wakes_, {})) wake();
    });
  }
  [[nodiscard]] int tasks() {
    return reactor_.run([this] { return tasks_; });
  }
  [[nodiscard]] bool is_waited_for() {
    return eventually([this] { return reactor_.run([this] { return !wakes_.empty(); }); });
  }
  [[nodiscard]] std::vector<v1::Audit> audits() {
    return reactor_.run([this] { return audits_; });
  }

 private:
  class Task final : public AdmissionTask {
   public:
    Task(Crowded& server, AdmissionRequestsPtr pods) : server_(server), pods_(std::move(pods)) { ++server_.tasks_; }
    ~Task() override { --server_.tasks_; }
    Result<std::vector<v1::AdmitResponse>> decide_some() override {
      std::vector<v1::AdmitResponse> answers;
      if (server_.room_ == 0) return answers;
      --server_.room_;
      auto& answer = answers.emplace_back();
      answer.set_admitted(true);
      answer.mutable_pod()->set_name((*pods_)[next_++].pod.name);
      return answers;
    }
    void when_room(std::function<void()> wake) override { server_.wakes_.push_back(std::move(wake)); }
    [[nodiscard]] bool asks_others() const override { return server_.others_are_silent_; }
    boost::asio::awaitable<void> carry_out(std::vector<v1::AdmitResponse>& /*decided*/) override {
      boost::asio::steady_timer soon{server_.reactor_.context};
      while (server_.others_are_silent_) {
        soon.expires_after(std::chrono::milliseconds{1});
        co_await soon.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
      }
    }

   private:
    Crowded& server_;
    AdmissionRequestsPtr pods_;
    std::size_t next_ = 0;
  };

  v1::NodeStatus status() override { return {}; }
  [[nodiscard]] std::int64_t memory_capacity() const override { return std::int64_t{1} << 30; }
  std::unique_ptr<AdmissionTask> admit(AdmissionRequestsPtr pods, bool /*reserve*/) override {
    return std::make_unique<Task>(*this, std::move(pods));
  }
  void audit(const v1::Audit& audit) override { audits_.push_back(audit); }

  TemporaryDirectory directory_;

 public:
  const std::string socket = directory_ / "admin.sock";

 private:
  int room_ = 0;
  bool others_are_silent_ = false;
  int tasks_ = 0;
  std::vector<std::function<void()>> wakes_;
  std::vector<v1::Audit> audits_;
  Reactor reactor_;
  events::EventLog log_{reactor_.context.get_executor()};
  std::unique_ptr<Server> server_;
};

/// An Admit with `reserve` under way. Other than a call that blocks it hears of the initial metadata.
class Asking final : grpc::ClientUnaryReactor {
 public:
  Asking(const Client& client, const std::string& name) {
    request_.set_pod("{kind: Pod, metadata: {name: " + name + "}, spec: {containers: [{name: c}]}}");
    request_.set_reserve(true);
    context_.set_deadline(std::chrono::system_clock::now() + test::patience);
    client.stub->async()->Admit(&context_, &request_, &response, this);
    StartCall();
  }
  ~Asking() {
    context_.TryCancel();
    if (status_.valid()) status_.wait();
  }

  /// Whether the agent lets the client know that the answer takes its time.
  [[nodiscard]] bool is_confirmed() { return confirmed_.get_future().get(); }
  void cancel() { context_.TryCancel(); }
  [[nodiscard]] bool is_over() const { return status_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  [[nodiscard]] grpc::Status status() { return status_.get(); }

  v1::AdmitResponse response;  // once it is over

 private:
  void OnReadInitialMetadataDone(bool ok) override { confirmed_.set_value(ok); }
  void OnDone(const grpc::Status& status) override { done_.set_value(status); }

  grpc::ClientContext context_;
  v1::AdmitRequest request_;
  std::promise<bool> confirmed_;
  std::promise<grpc::Status> done_;
  std::future<grpc::Status> status_ = done_.get_future();
};

}  // namespace

TEST_CASE("the client learns that room is made, and has its answer once there is; others are answered meanwhile") {
  Crowded crowded;
  const Client client(crowded.socket);
  Asking asking(client, "vital");
  CHECK(asking.is_confirmed());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + test::patience);
  v1::NodeStatus reply;
  CHECK(client.stub->GetNodeStatus(&context, {}, &reply).ok());
  CHECK_FALSE(asking.is_over());
  CHECK(crowded.audits().empty());
  crowded.make_room(1);
  CHECK(asking.status().ok());
  CHECK(asking.response.admitted());
  CHECK(asking.response.pod().name() == "vital");
  const auto audits = crowded.audits();
  REQUIRE(audits.size() == 1);
  CHECK(audits[0].outcome() == "done");
  CHECK(crowded.tasks() == 0);
}

TEST_CASE("the client learns that others are asked, and has its answer once they have done their part") {
  Crowded crowded;
  crowded.make_room(1);
  crowded.silence_others(true);
  const Client client(crowded.socket);
  Asking asking(client, "with-devices");
  CHECK(asking.is_confirmed());
  CHECK_FALSE(asking.is_over());
  CHECK(crowded.audits().empty());
  crowded.silence_others(false);
  CHECK(asking.status().ok());
  CHECK(asking.response.admitted());
  CHECK(crowded.tasks() == 0);
}

TEST_CASE("a client that goes away leaves nothing behind but the word of it") {
  Crowded crowded;
  const Client client(crowded.socket);
  {
    Asking asking(client, "vital");
    CHECK(asking.is_confirmed());
    CHECK(crowded.tasks() == 1);
    asking.cancel();
    CHECK(asking.status().error_code() == grpc::StatusCode::CANCELLED);
  }
  CHECK(eventually([&] { return crowded.tasks() == 0; }));
  {
    const Client other(crowded.socket);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
    v1::AdmitRequest request;
    request.set_pod("{kind: Pod, metadata: {name: next}, spec: {containers: [{name: c}]}}");
    request.set_reserve(true);
    v1::AdmitResponse response;
    CHECK(other.stub->Admit(&context, request, &response).error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  CHECK(eventually([&] { return crowded.tasks() == 0; }));
  const auto audits = crowded.audits();
  REQUIRE_FALSE(audits.empty());  // the second may have been gone before it was asked about
  for (const auto& audit : audits) CHECK(audit.outcome() == "CANCELLED: the client went away");
  CHECK(audits[0].after(0) == "default/vital: undecided");
  crowded.make_room(1);  // finds nobody
}

TEST_CASE("a stop ends those that wait, and what they waited with") {
  Crowded crowded;
  const Client client(crowded.socket);
  Asking asking(client, "vital");
  CHECK(asking.is_confirmed());
  REQUIRE(crowded.is_waited_for());
  crowded.stop();
  CHECK(crowded.tasks() == 0);
  const auto status = asking.status();
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(status.error_message() == "evictd shuts down");
  crowded.make_room(1);  // finds nobody
}

TEST_CASE("of a batch each pod waits for its own room, and the answers come together in their order") {
  Crowded crowded;
  const Client client(crowded.socket);
  auto asked = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + test::patience);
    v1::AdmitBatchRequest request;
    for (const std::string name : {"a", "b", "c"})
      request.add_pods("{kind: Pod, metadata: {name: " + name + "}, spec: {containers: [{name: c}]}}");
    request.set_reserve(true);
    v1::AdmitBatchResponse response;
    const auto status = client.stub->AdmitBatch(&context, request, &response);
    CHECK(status.ok());
    return response;
  });
  for (int i = 0; i < 3; ++i) {
    CHECK(crowded.is_waited_for());
    crowded.make_room(1);
  }
  const auto response = asked.get();
  REQUIRE(response.answers_size() == 3);
  CHECK(response.answers(0).pod().name() == "a");
  CHECK(response.answers(2).pod().name() == "c");
}

}  // namespace evictd::api::admission_wait_test
