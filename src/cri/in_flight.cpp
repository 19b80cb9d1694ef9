#include "cri/in_flight.hpp"

#include <grpcpp/client_context.h>

namespace evictd::cri {

void InFlight::began(grpc::ClientContext& context) { contexts_.insert(&context); }

void InFlight::ended(grpc::ClientContext& context) { contexts_.erase(&context); }

void InFlight::cancel_all() {
  closed_ = true;
  for (auto* context : contexts_) context->TryCancel();
}

void InFlight::lent() {
  const std::lock_guard lock{mutex_};
  ++with_grpc_;
}

void InFlight::returned() {
  // Notified under the lock: once it is free, the waiting thread may destroy the object of this call.
  const std::lock_guard lock{mutex_};
  if (--with_grpc_ == 0) idle_.notify_all();
}

void InFlight::wait_until_returned() {
  std::unique_lock lock{mutex_};
  idle_.wait(lock, [this] { return with_grpc_ == 0; });
}

}  // namespace evictd::cri
