#include "api/health.hpp"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rpc/server/completion.hpp"

namespace evictd::api {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

/// A watch lasts for as long as its client likes, and anybody who may connect may watch.
constexpr std::size_t most_watches = 256;
constexpr std::size_t longest_service_name = 256;

}  // namespace

/// A Check from its arrival to its end.
class Health::Check final : public rpc::Completion {
 public:
  explicit Check(Health& health) : health_(health) {
    health_.service_.RequestCheck(&context_, &request_, &responder_, health_.queue_, health_.queue_, tag());
  }

  void complete(bool ok) override {
    if (answered_ || !ok) return delete this;  // not ok: the server shuts down
    answered_ = true;
    health_.listen_for_check();
    HealthCheckResponse response;
    {
      const std::lock_guard lock(health_.mutex_);
      response.set_status(health_.status_of(request_.service()));
    }
    if (response.status() == HealthCheckResponse::SERVICE_UNKNOWN)
      responder_.FinishWithError({grpc::StatusCode::NOT_FOUND, "service name unknown"}, tag());
    else
      responder_.Finish(response, grpc::Status::OK, tag());
  }

 private:
  Health& health_;
  std::shared_ptr<const char> share_ = health_.of_calls_;
  grpc::ServerContext context_;
  HealthCheckRequest request_;
  grpc::ServerAsyncResponseWriter<HealthCheckResponse> responder_{&context_};
  bool answered_ = false;
};

/// A Watch from its arrival until its client has left, or was cut off. All under the lock of Health.
class Health::Watch {
 public:
  explicit Watch(Health& health) : health_(health) {
    context_.AsyncNotifyWhenDone(left_.tag());
    health_.service_.RequestWatch(&context_, &request_, &writer_, health_.queue_, health_.queue_, arrived_.tag());
  }

  void tell(const std::string& service, Status status) {
    if (service != service_name_) return;
    next_ = status;
    write_next();
  }

 private:
  void arrived(bool ok) {
    if (!ok) return delete this;  // the server shuts down
    health_.listen_for_watch();
    const std::lock_guard lock(health_.mutex_);
    arrived_already_ = true;
    if (request_.service().size() > longest_service_name)
      return refuse({grpc::StatusCode::INVALID_ARGUMENT, "service: there is no name of so many bytes"});
    if (health_.watches_.size() >= most_watches)
      return refuse({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many watch already: try again when some have left"});
    service_name_ = request_.service();
    health_.watches_.insert(this);
    HealthCheckRequest().Swap(&request_);  // it may hold more than the name
    next_ = health_.status_of(service_name_);
    write_next();
  }
  void written(bool /*ok*/) {
    const std::unique_lock lock(health_.mutex_);
    writing_ = false;
    write_next();
  }
  void left(bool /*ok*/) {
    {
      const std::lock_guard lock(health_.mutex_);
      has_left_ = true;
      health_.watches_.erase(this);
      write_next();
    }
    if (has_finished_) delete this;
  }
  /// One that was refused is told afterwards that it has left.
  void finished(bool /*ok*/) {
    has_finished_ = true;
    if (has_left_) delete this;
  }

  void refuse(const grpc::Status& status) {
    finishing_ = true;
    HealthCheckRequest().Swap(&request_);
    writer_.Finish(status, finished_.tag());
  }

  void write_next() {
    if (writing_ || finishing_ || !arrived_already_) return;
    if (has_left_) {
      finishing_ = true;
      return writer_.Finish(grpc::Status::CANCELLED, finished_.tag());
    }
    const auto status = std::exchange(next_, std::nullopt);
    if (!status || status == told_) return;
    told_ = status;
    writing_ = true;
    HealthCheckResponse response;
    response.set_status(*status);
    writer_.Write(response, written_.tag());
  }

  Health& health_;
  std::shared_ptr<const char> share_ = health_.of_calls_;
  grpc::ServerContext context_;
  HealthCheckRequest request_;
  std::string service_name_;
  grpc::ServerAsyncWriter<HealthCheckResponse> writer_{&context_};
  rpc::OwnCompletion<Watch> arrived_{*this, &Watch::arrived};
  rpc::OwnCompletion<Watch> written_{*this, &Watch::written};
  rpc::OwnCompletion<Watch> left_{*this, &Watch::left};
  rpc::OwnCompletion<Watch> finished_{*this, &Watch::finished};
  std::optional<Status> next_;
  std::optional<Status> told_;
  bool arrived_already_ = false;
  bool writing_ = false;
  bool has_left_ = false;
  bool finishing_ = false;
  bool has_finished_ = false;
};

Health::Health(const std::vector<std::string>& services) {
  for (const auto& service : services) statuses_.emplace(service, HealthCheckResponse::NOT_SERVING);
}

void Health::listen(grpc::ServerCompletionQueue& queue) {
  queue_ = &queue;
  listen_for_check();
  listen_for_watch();
}

void Health::listen_for_check() { new Check(*this); }

void Health::listen_for_watch() { new Watch(*this); }

void Health::set_serving(bool serving) {
  const std::lock_guard lock(mutex_);
  for (auto& [service, status] : statuses_) {
    status = serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
    for (auto* watch : watches_) watch->tell(service, status);
  }
}

Health::Status Health::status_of(const std::string& service) const {
  const auto found = statuses_.find(service);
  return found == statuses_.end() ? HealthCheckResponse::SERVICE_UNKNOWN : found->second;
}

}  // namespace evictd::api
