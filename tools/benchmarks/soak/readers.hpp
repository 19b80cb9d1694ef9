#pragma once
#include <atomic>
#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "benchmarks/soak/diary.hpp"
#include "benchmarks/soak/dice.hpp"
#include "benchmarks/soak/evictions.hpp"
#include "benchmarks/soak/findings.hpp"
#include "testbed/agent.hpp"
#include "testbed/rejected_pods.hpp"
#include "testbed/testbed.hpp"

namespace bench::soak {

/// Reads all events from the first to the last, and may miss none.
class Chronicle {
 public:
  Chronicle(const testbed::Agent& agent, Ledger& ledger, Findings& findings);
  ~Chronicle();
  Chronicle(const Chronicle&) = delete;
  Chronicle& operator=(const Chronicle&) = delete;

  [[nodiscard]] const Evictions& evictions() const { return evictions_; }
  /// The number of the event read last.
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  void read();

  Findings& findings_;
  Diary diary_;
  Evictions evictions_;
  std::atomic<std::uint64_t> last_ = 0;
  std::unique_ptr<evictd::v1::EvictionService::Stub> stub_;
  grpc::ClientContext context_;
  std::atomic<bool> leaving_ = false;
  std::thread thread_;
};

struct VisitorFigures {
  std::atomic<std::uint64_t> visits = 0;
  std::atomic<std::uint64_t> resumed = 0;  ///< of these, from the number known on
  std::atomic<std::uint64_t> events = 0;
  std::atomic<std::uint64_t> gaps = 0;     ///< told to those who did not keep up, or came for the whole history
  std::atomic<std::uint64_t> cut_off = 0;  ///< for leaving events unread

  [[nodiscard]] boost::json::object told() const;
};

/// Subscribers that come and go, each on a connection of its own for each visit: some read at once, some at their
/// leisure, some not at all. They leave with this object.
class Visitors {
 public:
  Visitors(const testbed::Agent& agent, Ledger& ledger, Findings& findings, VisitorFigures& figures, std::uint64_t seed,
           int count);
  ~Visitors();
  Visitors(const Visitors&) = delete;
  Visitors& operator=(const Visitors&) = delete;

 private:
  std::vector<std::jthread> threads_;
};

/// Makes events at random moments, some dozens a second on average, until it is asked to stop.
class Chatter {
 public:
  Chatter(const testbed::Testbed& testbed, const testbed::Agent& agent, Findings& findings, std::uint64_t seed);

  /// As many as the history has room for, with `pause` after each few: what it takes when it is full is no growth
  /// later.
  void fill_history(const std::function<void()>& pause);
  void run(const std::stop_token& stop);

 private:
  testbed::RejectedPods pods_;
  Findings& findings_;
  Dice dice_;
};

}  // namespace bench::soak
