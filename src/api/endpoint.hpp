#pragma once
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <memory>

#include "api/eviction_service.hpp"
#include "api/health.hpp"
#include "os/file_descriptor.hpp"
#include "rpc/server/completion.hpp"
#include "rpc/server/open_socket.hpp"

namespace evictd::api {

/// A grpc::Server for one way in, with a thread for its completion queue. It listens nowhere: it is handed connections.
class Endpoint {
 public:
  /// `credentials`: null for connections that are taken as they are, from unix sockets. `largest_message`: of those
  /// that clients send, in bytes.
  Endpoint(std::unique_ptr<EvictionService> service, std::shared_ptr<grpc::ServerCredentials> credentials,
           std::size_t largest_message);

  /// A connection that is open and non-blocking. Any thread, before the shutdown.
  void take(os::FileDescriptor connection);

  void set_serving(bool serving);
  /// As EvictionService::is_answering().
  [[nodiscard]] bool is_answering() const { return service_->is_answering(); }
  /// Cuts off at the deadline what has not ended by then. `clients`: whose connections it took.
  void shutdown(std::chrono::system_clock::time_point deadline, const rpc::OpenSockets& clients);

 private:
  std::unique_ptr<EvictionService> service_;
  Health health_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;  // refers to all of them
  std::unique_ptr<rpc::CompletionThread> queue_thread_;
};

}  // namespace evictd::api
