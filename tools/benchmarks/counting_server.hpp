#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/cluster_objects.hpp"

namespace bench {

/// Something that crossed the wire.
struct Crossing {
  enum class What : std::uint8_t {
    Request,     ///< with its answer; of a watch the heads
    Bookmark,    ///< of a watch
    Change,      ///< of a watch
    Connection,  ///< taken
    TurnedAway,  ///< a connection that was refused
  };
  What what = What::Request;
  Call call = Call::Other;  ///< of a request
  int node = -1;            ///< of a request
  std::uint32_t in = 0;     ///< bytes that the server got: HTTP, without TLS and TCP
  std::uint32_t out = 0;
  std::chrono::steady_clock::time_point time{};
};

/// A small API server on 127.0.0.1 that keeps a cluster's pods and nodes, speaks plain HTTP/1.1 and counts. It runs on
/// a thread of its own; any thread may call its methods, which wait for that one.
class CountingServer {
 public:
  /// `bookmarks`: how often each watch gets one.
  CountingServer(int nodes, int pods, std::chrono::milliseconds bookmarks);
  CountingServer(const CountingServer&) = delete;
  CountingServer& operator=(const CountingServer&) = delete;
  ~CountingServer();

  [[nodiscard]] int port() const { return acceptor_.local_endpoint().port(); }

  /// Breaks all connections, and takes no new ones until told so.
  void turn_away();
  void take_again();
  /// Ends all watches properly, as a server does before it goes away.
  void end_watches();
  /// How many nodes have one now.
  [[nodiscard]] int watches();

  /// As they are now.
  [[nodiscard]] ClusterObjects objects();
  /// All so far, in order.
  [[nodiscard]] std::vector<Crossing> crossings();

 private:
  struct Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;

  boost::asio::awaitable<void> accept();
  boost::asio::awaitable<void> serve(ConnectionPtr connection);
  boost::asio::awaitable<bool> answer(ConnectionPtr connection, Crossing crossing, ClusterObjects::Handled handled);
  boost::asio::awaitable<bool> watch(ConnectionPtr connection, Crossing crossing, std::chrono::seconds length);
  /// What the node's watch has to tell.
  void tell(int node, const std::string& change);
  void count(Crossing crossing);

  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_{context_, {boost::asio::ip::address_v4::loopback(), 0}};
  ClusterObjects objects_;
  std::chrono::milliseconds bookmarks_;
  std::vector<std::weak_ptr<Connection>> watches_;  // the last of each node
  std::set<ConnectionPtr> connections_;
  std::vector<Crossing> crossings_;
  bool away_ = false;
  std::thread thread_;
};

}  // namespace bench
