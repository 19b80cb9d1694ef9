#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "testbed/agent.hpp"
#include "testbed/rejected_pods.hpp"
#include "testbed/testbed.hpp"

namespace bench {

/// Many subscribers to an agent's events, each on a connection of its own, who read as fast as they are served. They
/// leave with this object.
class Subscribers {
 public:
  /// Returns when all subscriptions stand.
  Subscribers(const testbed::Agent& agent, std::size_t count);
  ~Subscribers();
  Subscribers(const Subscribers&) = delete;

  /// Events that were read so far by all of them, and those that they were told they had missed.
  [[nodiscard]] std::uint64_t read() const { return read_; }
  [[nodiscard]] std::uint64_t missed() const { return missed_; }
  /// Streams that ended before their time.
  [[nodiscard]] std::size_t lost() const { return lost_; }

 private:
  class Stream;

  std::atomic<std::uint64_t> read_ = 0;
  std::atomic<std::uint64_t> missed_ = 0;
  std::atomic<std::size_t> lost_ = 0;
  std::atomic<bool> leaving_ = false;
  std::vector<std::unique_ptr<Stream>> streams_;  // last: until they are gone they count in the above
};

/// Makes events through the agent's API at a rate, from a thread of its own.
class EventLoad {
 public:
  /// `rate`: events a second, > 0. What the machine does not manage is not made up for.
  EventLoad(const testbed::Testbed& testbed, const testbed::Agent& agent, int rate);

  [[nodiscard]] std::uint64_t made() const { return made_; }

 private:
  void run(const std::stop_token& stop, int rate);

  testbed::RejectedPods pods_;
  std::atomic<std::uint64_t> made_ = 0;
  std::jthread thread_;
};

}  // namespace bench
