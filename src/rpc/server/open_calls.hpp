#pragma once
#include <grpcpp/support/status.h>

#include <memory>
#include <mutex>
#include <unordered_map>

namespace evictd::rpc {

/// A call that was begun, and of which gRPC has not told everything yet.
class OpenCall {
 public:
  virtual ~OpenCall() = default;
  /// Ends the call with this status where it has not ended by itself; from the reactor's thread, or from the queue's
  /// before the call was ever posted there.
  virtual void abort(const grpc::Status& status) = 0;
};

/// Owns the calls from their begin to their end, and ends them all when the server shuts down: a call that nobody
/// finishes would hold up grpc::Server::Shutdown for ever. Shared by the queues' threads and the reactor, hence the
/// lock.
class OpenCalls {
 public:
  /// False: the server shuts down, the call is to be aborted at once.
  [[nodiscard]] bool add(const std::shared_ptr<OpenCall>& call);
  void remove(const OpenCall* call);

  /// From now on `add` refuses; all calls there are end with `status`.
  void abort_all(const grpc::Status& status);

 private:
  std::mutex mutex_;
  bool closed_ = false;
  std::unordered_map<const OpenCall*, std::shared_ptr<OpenCall>> calls_;
};

/// How calls end that the agent does not live to answer.
[[nodiscard]] grpc::Status shutting_down();

/// The same status with a message that is one printable line of about 1,024 bytes at most. Many an error repeats what
/// the client sent, and a message of more than 8 KiB never arrives: the client would see RESOURCE_EXHAUSTED.
[[nodiscard]] grpc::Status presentable(const grpc::Status& status);

/// How a call ends whose answering threw, for want of memory, say. The log is told why, once a minute at most: a client
/// may call again at once. On the reactor.
[[nodiscard]] grpc::Status given_up(const std::string& reason);

}  // namespace evictd::rpc
