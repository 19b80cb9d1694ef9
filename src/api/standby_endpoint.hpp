#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "os/file_descriptor.hpp"
#include "rpc/server/open_socket.hpp"

namespace evictd::api {

class Endpoint;

/// An Endpoint that is there while somebody is connected, and for `rest` longer. From its first server on gRPC 1.51
/// wakes several times a second for timers that nobody set, and holds its threads and heaps: where nobody asks, nobody
/// pays for it.
class StandbyEndpoint {
 public:
  using Make = std::move_only_function<std::unique_ptr<Endpoint>()>;

  StandbyEndpoint(Make make, std::chrono::milliseconds rest);
  ~StandbyEndpoint();
  StandbyEndpoint(const StandbyEndpoint&) = delete;
  StandbyEndpoint& operator=(const StandbyEndpoint&) = delete;

  /// A connection that is open and non-blocking. Making the endpoint, where there is none, takes some milliseconds, and
  /// throws where there are no threads or descriptors for it; then the connection is closed. On the acceptor's thread.
  void take(os::FileDescriptor connection);
  /// Ends the endpoint where nobody has been connected, and no call was in flight, for `rest`. True: there is one, to
  /// look after again. On the acceptor's thread.
  bool look_after();

  /// Also of an endpoint that is made later; at first it is not. Any thread.
  void set_serving(bool serving);
  /// Cuts off at the deadline what has not ended by then. Once the acceptor has gone.
  void shutdown(std::chrono::system_clock::time_point deadline);

 private:
  Make make_;
  std::chrono::milliseconds rest_;
  rpc::OpenSockets inside_;
  std::chrono::steady_clock::time_point last_in_{};  // when somebody was last seen inside
  std::mutex mutex_;                                 // the rest is the acceptor's and the reactor's
  bool serving_ = false;
  std::unique_ptr<Endpoint> endpoint_;
};

}  // namespace evictd::api
