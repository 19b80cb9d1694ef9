#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
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

  [[nodiscard]] int port() const;

  /// Breaks all connections, and takes no new ones until told so.
  void turn_away();
  void take_again();
  /// Ends all watches properly, as a server does before it goes away.
  void end_watches();
  /// How many nodes have one now.
  [[nodiscard]] int watches() const;

  [[nodiscard]] Told told() const;
  /// All so far, in order.
  [[nodiscard]] std::vector<Crossing> crossings() const;
  [[nodiscard]] std::size_t pod_bytes() const;   ///< of JSON
  [[nodiscard]] std::size_t node_bytes() const;  ///< likewise

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bench
