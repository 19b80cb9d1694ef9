#pragma once
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "benchmarks/cluster_objects.hpp"

namespace bench {

/// What came to the server in a part of a cluster's life.
struct ClusterPhase {
  std::string name;
  double seconds = 0;
  std::array<std::vector<int>, calls> requests{};  ///< of each Call, in each second
  std::vector<int> turned_away{};                  ///< connections, in each second
  int connections = 0;
  int bookmarks = 0;
  int changes = 0;             ///< of pods, told by watches
  std::uint64_t bytes_in = 0;  ///< that the server got: HTTP, without TLS and TCP
  std::uint64_t bytes_out = 0;
  int most_of_a_node = 0;  ///< requests

  [[nodiscard]] int count(Call call) const;
  [[nodiscard]] int all_requests() const;
  /// Of one kind, in the busiest second.
  [[nodiscard]] int peak(Call call) const;
  /// Of all kinds.
  [[nodiscard]] int peak() const;
};

/// A small API server on 127.0.0.1 that keeps a cluster's pods and nodes, speaks plain HTTP/1.1 and counts. On the
/// reactor's thread, as its clients are.
class CountingServer {
 public:
  /// `bookmarks`: how often each watch gets one.
  CountingServer(boost::asio::io_context& reactor, int nodes, int pods, std::chrono::milliseconds bookmarks);
  CountingServer(const CountingServer&) = delete;
  CountingServer& operator=(const CountingServer&) = delete;

  [[nodiscard]] int port() const { return acceptor_.local_endpoint().port(); }

  /// Breaks all connections, and takes no new ones until told so.
  void turn_away();
  void take_again() { away_ = false; }
  /// Ends all watches properly, as a server does before it goes away.
  void end_watches();
  /// How many nodes have one now.
  [[nodiscard]] int watches() const;

  [[nodiscard]] const ClusterObjects& objects() const { return objects_; }
  /// Counts anew.
  void begin_phase(std::string name);
  /// What came since.
  [[nodiscard]] const ClusterPhase& end_phase();

 private:
  struct Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;

  boost::asio::awaitable<void> accept();
  boost::asio::awaitable<void> serve(ConnectionPtr connection);
  boost::asio::awaitable<bool> answer(ConnectionPtr connection, ClusterObjects::Handled handled, std::size_t in);
  boost::asio::awaitable<bool> watch(ConnectionPtr connection, ClusterObjects::Handled handled, std::size_t in,
                                     std::chrono::seconds length);
  /// What the node's watch has to tell.
  void tell(int node, const std::string& change);
  /// A request with its answer, in bytes; of a watch the heads.
  void count(const ClusterObjects::Handled& handled, std::size_t in, std::size_t out);
  /// The entry of the second in which the phase is.
  [[nodiscard]] int& now_of(std::vector<int>& seconds) const;

  boost::asio::ip::tcp::acceptor acceptor_;
  ClusterObjects objects_;
  std::chrono::milliseconds bookmarks_;
  std::vector<std::weak_ptr<Connection>> watches_;  // the last of each node
  std::set<ConnectionPtr> connections_;
  ClusterPhase phase_;
  std::chrono::steady_clock::time_point phase_began_ = std::chrono::steady_clock::now();
  std::map<int, int> requests_of_;  // nodes, in the phase
  bool away_ = false;
};

}  // namespace bench
