#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "health.grpc.pb.h"

namespace evictd::api {

/// grpc.health.v1.Health of one server, on its completion queue: gRPC's own answers by callbacks, whose threads wake
/// without end. It needs no turn of the reactor.
class Health {
 public:
  /// What is known of; all are NOT_SERVING at first. A Check of another one is NOT_FOUND, a Watch SERVICE_UNKNOWN; a
  /// Watch of a name of more than 256 bytes is INVALID_ARGUMENT. While 256 watch, one more is RESOURCE_EXHAUSTED.
  explicit Health(const std::vector<std::string>& services);
  Health(const Health&) = delete;
  Health& operator=(const Health&) = delete;

  [[nodiscard]] grpc::Service& service() { return service_; }
  /// Takes calls from now on, until the server shuts down. The queue has a CompletionThread, which ends first.
  void listen(grpc::ServerCompletionQueue& queue);

  /// As EvictionService::has_calls().
  [[nodiscard]] bool has_calls() const { return of_calls_.use_count() > 1; }

  /// Tells the watchers, too. Any thread.
  void set_serving(bool serving);

 private:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;
  class Check;
  class Watch;

  void listen_for_check();
  void listen_for_watch();
  [[nodiscard]] Status status_of(const std::string& service) const;  // under the lock

  grpc::health::v1::Health::AsyncService service_;
  grpc::ServerCompletionQueue* queue_ = nullptr;
  mutable std::mutex mutex_;
  std::map<std::string, Status> statuses_;
  std::unordered_set<Watch*> watches_;
  std::shared_ptr<const char> of_calls_ = std::make_shared<const char>();  // each has a share
};

}  // namespace evictd::api
