#pragma once
#include <grpcpp/client_context.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>

namespace evictd::ctl {

/// SIGINT and SIGTERM, which do not end this process while it lives.
class EndSignals {
 public:
  EndSignals();

  /// Waits for one at most for this time. True: one came, now or before.
  [[nodiscard]] bool come_within(std::chrono::milliseconds time);

 private:
  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_{loop_, SIGINT, SIGTERM};
  bool came_ = false;
};

/// Cancels a call that has no deadline of its own: on SIGINT or SIGTERM, and when the agent does not answer at all. A
/// thread does the waiting, since gRPC's calls block and may not be cancelled from a signal handler.
class Interruption {
 public:
  enum class Cause : std::uint8_t { None, Signal, NoAnswer };

  Interruption(grpc::ClientContext& call, std::chrono::milliseconds answer_within);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// The agent answered: from now on only signals count.
  void answered();
  [[nodiscard]] Cause cause() const { return cause_; }

 private:
  void cancel(Cause cause);

  grpc::ClientContext& call_;
  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_{loop_, SIGINT, SIGTERM};
  boost::asio::steady_timer no_answer_;
  std::atomic<Cause> cause_ = Cause::None;
  std::thread thread_;
};

}  // namespace evictd::ctl
