#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>
#include <string>

#include "async/worker.hpp"
#include "core/error.hpp"

namespace evictd::api {

/// A socket on which programs learn that memory is short, by systemd's memory pressure protocol
/// (https://systemd.io/MEMORY_PRESSURE): a program connects to the stream socket that $MEMORY_PRESSURE_WATCH names,
/// and whenever something can be read it gives back what memory it does not need, and reads and forgets what came.
///
/// Who connects is a pod, and not trusted. All it gets is one byte from time to time; what it says is read and
/// forgotten. Few connections are taken in a second, and of one pod, or of one service of the host, no more than
/// some. One that talks on, or that leaves unread what it is told until the kernel takes no more, is closed. On the
/// reactor, which never waits for any of them.
class PressureSocket {
 public:
  struct Options {
    std::string path;  ///< its directory is made where it is missing, and open to all: pods mount it
    std::string proc = "/proc";
    std::size_t connections = 256;
    std::size_t of_one_pod = 16;
  };

  /// `worker`, which outlives this, looks up whose a connection is: the kernel may let that wait for changes of
  /// cgroups.
  [[nodiscard]] static Result<std::unique_ptr<PressureSocket>> open(const boost::asio::any_io_executor& reactor,
                                                                    async::Worker& worker, Options options);
  PressureSocket(const PressureSocket&) = delete;
  PressureSocket& operator=(const PressureSocket&) = delete;
  /// Closes all connections and removes the socket.
  ~PressureSocket();

  /// Tells every program that is connected; how many there were. A send for each: some µs.
  [[nodiscard]] std::size_t tell();
  [[nodiscard]] std::size_t connected() const;

 private:
  struct State;
  explicit PressureSocket(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

/// Whose a process is, as far as its connections are counted: the uid of its pod, or else its cgroup. "" where that
/// cannot be seen. May wait for the kernel.
[[nodiscard]] std::string peer_of(const std::string& proc, int pid);

}  // namespace evictd::api
