#pragma once
#include <grpcpp/client_context.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>

namespace evictd::ctl {

/// SIGINT and SIGTERM, which do not end this process while it lives.
class EndSignals {
 public:
  EndSignals();

  /// Waits for one at most for this time, and no longer once stop() was called. True: one came, now or before.
  [[nodiscard]] bool come_within(std::chrono::milliseconds time);
  /// From any thread.
  void stop() { loop_.stop(); }

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
  void answered() { answered_ = true; }
  [[nodiscard]] Cause cause() const { return cause_; }

 private:
  void watch(std::chrono::milliseconds answer_within);

  grpc::ClientContext& call_;
  EndSignals signals_;
  std::atomic<bool> answered_ = false;
  std::atomic<bool> over_ = false;
  std::atomic<Cause> cause_ = Cause::None;
  std::thread thread_;
};

}  // namespace evictd::ctl
