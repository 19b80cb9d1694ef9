#include "api/health.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "api/running_server.hpp"

namespace evictd::api::health_test {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using test::Client;
using test::RunningServer;

HealthCheckRequest ask(const std::string& service) {
  HealthCheckRequest request;
  request.set_service(service);
  return request;
}

/// A client that watches a service.
class Watcher {
 public:
  Watcher(const Client& client, const std::string& service)
      : stub_(grpc::health::v1::Health::NewStub(client.channel)), reader_(stub_->Watch(&context_, ask(service))) {}
  ~Watcher() {
    context_.TryCancel();
    if (reader_) reader_->Finish();
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  HealthCheckResponse::ServingStatus read() {
    HealthCheckResponse response;
    REQUIRE(reader_->Read(&response));
    return response.status();
  }
  /// Whether it was not refused.
  [[nodiscard]] bool hears_something() {
    HealthCheckResponse response;
    return reader_->Read(&response);
  }
  /// Of one that is told nothing.
  grpc::Status finish() {
    HealthCheckResponse response;
    CHECK_FALSE(reader_->Read(&response));
    return std::exchange(reader_, nullptr)->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
};

TEST_CASE("a watcher is told how a service is, and again whenever that changes") {
  RunningServer running;
  const Client client(running.socket);
  Watcher whole(client, "");
  Watcher service(client, "evictd.v1.EvictionService");
  CHECK(whole.read() == HealthCheckResponse::NOT_SERVING);
  CHECK(service.read() == HealthCheckResponse::NOT_SERVING);
  running.reactor.run([&] { running.server->set_serving(true); });
  CHECK(whole.read() == HealthCheckResponse::SERVING);
  CHECK(service.read() == HealthCheckResponse::SERVING);
  running.reactor.run([&] { running.server->set_serving(true); });  // no news
  running.reactor.run([&] { running.server->set_serving(false); });
  CHECK(whole.read() == HealthCheckResponse::NOT_SERVING);
}

TEST_CASE("of a service that there is not, a check says so, and so does a watch") {
  RunningServer running;
  const Client client(running.socket);
  const auto stub = grpc::health::v1::Health::NewStub(client.channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + test::patience);
  HealthCheckResponse response;
  CHECK(stub->Check(&context, ask("nobody"), &response).error_code() == grpc::StatusCode::NOT_FOUND);
  Watcher watcher(client, "nobody");
  CHECK(watcher.read() == HealthCheckResponse::SERVICE_UNKNOWN);
}

TEST_CASE("a name that no service has is not kept for a watch, and so many may watch at a time") {
  RunningServer running;
  const Client client(running.socket);
  const Client other(running.socket);
  CHECK(Watcher(client, std::string(257, 'x')).finish().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  Watcher longest(client, std::string(256, 'x'));
  CHECK(longest.read() == HealthCheckResponse::SERVICE_UNKNOWN);
  std::list<Watcher> watchers;
  for (int i = 0; i < 255; ++i) CHECK(watchers.emplace_back(client, "").read() == HealthCheckResponse::NOT_SERVING);
  CHECK(Watcher(other, "").finish().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  watchers.clear();
  CHECK(test::eventually([&] {
    Watcher watcher(other, "evictd.v1.EvictionService");
    return watcher.hears_something();
  }));
}

TEST_CASE("watchers that come and go leave nothing behind") {
  RunningServer running;
  const Client client(running.socket);
  for (int i = 0; i < 20; ++i) {
    Watcher watcher(client, "");
    if (i % 2 == 0) CHECK(watcher.read() == HealthCheckResponse::NOT_SERVING);
  }
  running.reactor.run([&] { running.server->set_serving(true); });
  Watcher watcher(client, "");
  CHECK(watcher.read() == HealthCheckResponse::SERVING);
}

}  // namespace
}  // namespace evictd::api::health_test
