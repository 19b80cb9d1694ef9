#pragma once
#include <grpcpp/client_context.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace evictd::ctl {

/// Cancels a call that has no deadline of its own: on SIGINT or SIGTERM, and when the agent does not answer at all. A
/// thread does the waiting, since gRPC's calls block and may not be cancelled from a signal handler.
class Interruption {
 public:
  enum class Cause : std::uint8_t { None, Signal, NoAnswer };

  /// While it lives, SIGINT and SIGTERM do not end this process. To be made before gRPC makes its threads: they inherit
  /// the mask.
  class BlockedSignals {
   public:
    BlockedSignals();
    ~BlockedSignals();
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

   private:
    friend class Interruption;
    sigset_t previous_{};
    int signal_fd_;
  };

  Interruption(const BlockedSignals& signals, grpc::ClientContext& call, std::chrono::milliseconds answer_within);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// The agent answered: from now on only signals count.
  void answered();
  [[nodiscard]] Cause cause() const { return cause_; }

 private:
  void watch(int signal_fd, std::chrono::milliseconds answer_within);

  grpc::ClientContext& call_;
  int event_fd_;  // becomes readable when answered, and when over
  std::atomic<bool> over_ = false;
  std::atomic<Cause> cause_ = Cause::None;
  std::thread thread_;
};

}  // namespace evictd::ctl
