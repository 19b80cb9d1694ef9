// Calls whose answering throws.
#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "api/running_server.hpp"

namespace evictd::api::failing_call_test {
namespace {

using test::Client;
using test::Reactor;
using test::Subscriber;
using test::TemporaryDirectory;

/// A server for administrators whose parts have no memory left, until they are given some.
class Starved final : events::StatusSource, Admitter, ThresholdHandler {
 public:
  Starved() {
    server_ = std::make_unique<Server>(ServerOptions{.socket = "", .admin_socket = socket}, log_,
                                       Handlers{.status = *this, .admitter = this, .thresholds = this});
    REQUIRE(reactor_.run([&] { return server_->start().has_value(); }));
  }
  ~Starved() {
    reactor_.run([this] { server_.reset(); });
    reactor_.stop();
  }

  void feed() {
    reactor_.run([this] { starves_ = false; });
  }

 private:
  class Task final : public AdmissionTask {
   public:
    Result<std::vector<v1::AdmitResponse>> decide_some() override { return std::vector<v1::AdmitResponse>(1); }
    void when_room(std::function<void()> /*wake*/) override {}
  };

  void take_memory() const {
    if (starves_) throw std::bad_alloc();
  }
  v1::NodeStatus status() override {
    take_memory();
    return {};
  }
  [[nodiscard]] std::int64_t memory_capacity() const override { return std::int64_t{1} << 30; }
  std::unique_ptr<AdmissionTask> admit(AdmissionRequestsPtr /*pods*/, bool /*reserve*/) override {
    take_memory();
    return std::make_unique<Task>();
  }
  v1::ThresholdSet thresholds() override { return {}; }
  void update_thresholds(const v1::UpdateThresholdsRequest& /*request*/, UpdateDone done) override {
    take_memory();
    done({});
  }
  Answer<v1::SuggestThresholdsResponse> suggest_thresholds() override { return {}; }

  TemporaryDirectory directory_;

 public:
  const std::string socket = directory_ / "admin.sock";

 private:
  bool starves_ = true;  // of the reactor
  Reactor reactor_;
  events::EventLog log_{reactor_.context.get_executor()};
  std::unique_ptr<Server> server_;
};

grpc::Status ask_for_status(const Client& client) {
  grpc::ClientContext context;
  v1::NodeStatus response;
  return client.stub->GetNodeStatus(&context, {}, &response);
}

grpc::Status admit(const Client& client) {
  grpc::ClientContext context;
  v1::AdmitRequest request;
  v1::AdmitResponse response;
  request.set_pod("{metadata: {name: a}, spec: {containers: [{name: c}]}}");
  return client.stub->Admit(&context, request, &response);
}

grpc::Status update(const Client& client) {
  grpc::ClientContext context;
  v1::UpdateThresholdsResponse response;
  return client.stub->UpdateThresholds(&context, {}, &response);
}

grpc::Status take_snapshot(const Client& client) {
  auto request = test::new_events();
  request.set_snapshot(true);
  request.set_follow(false);
  return Subscriber(*client.stub, request).finish();
}

}  // namespace

TEST_CASE("a call whose answering throws ends alone, and the next one is answered") {
  Starved starved;
  const Client client(starved.socket);
  for (const auto& call : {ask_for_status, admit, update, take_snapshot})
    CHECK(call(client).error_code() == grpc::StatusCode::INTERNAL);
  starved.feed();
  for (const auto& call : {ask_for_status, admit, update, take_snapshot}) {
    const auto status = call(client);
    CHECK_MESSAGE(status.ok(), status.error_message());
  }
}

TEST_CASE("a call that is refused with what it has sent is told so, however much that is") {
  Starved starved;
  starved.feed();
  const Client client(starved.socket);
  grpc::ClientContext context;
  v1::AdmitRequest request;
  v1::AdmitResponse response;
  request.set_pod(
      "{metadata: {name: a}, spec: {containers: [{name: c}]}, status: {qosClass: " + std::string(10'000, 'x') + "}}");
  const auto status = client.stub->Admit(&context, request, &response);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(status.error_message().starts_with("pod:1: status.qosClass: \"xxx"));
  CHECK(status.error_message().size() < 1100);
}

}  // namespace evictd::api::failing_call_test
