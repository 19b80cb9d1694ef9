#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>

#include "rpc/server/open_socket.hpp"

namespace evictd::rpc {

/// Cuts off clients that have stopped reading: whatever they asked for would stay in evictd's memory, and count as
/// their account's calls, for as long as they are connected. gRPC's keepalive does not find them (1.51): its ping waits
/// behind what is unread. One that reads some KiB a second, of a socket that never has room for long, may be taken for
/// stalled: the kernel tells of room, and of a unix socket not how much was ever read.
///
/// All on one thread, that of `executor`.
class StalledClients {
 public:
  /// `patience`: for how long a client may take nothing while its socket is full. `cut_off` is told of each that was,
  /// by a descriptor of its connection.
  StalledClients(boost::asio::any_io_executor executor, std::chrono::milliseconds patience,
                 std::move_only_function<void(int connection)> cut_off);
  ~StalledClients();
  StalledClients(const StalledClients&) = delete;
  StalledClients& operator=(const StalledClients&) = delete;

  /// To be called for each connection from time to time. One whose socket is full is watched until it has room again,
  /// or is cut off; where no descriptor is left for that, the next look sees to it. Throws where there is no memory.
  void look_at(const OpenSocket& connection);

 private:
  struct Watch;

  boost::asio::any_io_executor executor_;
  std::chrono::milliseconds patience_;
  std::move_only_function<void(int)> cut_off_;
  std::list<std::shared_ptr<Watch>> watches_;
};

}  // namespace evictd::rpc
