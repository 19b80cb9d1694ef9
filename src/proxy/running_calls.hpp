#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace evictd::proxy {

/// Counts the calls under way, so that a proxy that ends can wait for them. Any thread; must outlive the tickets.
class RunningCalls {
 public:
  /// A call under way: until it is destroyed.
  class Ticket {
   public:
    Ticket(Ticket&& other) noexcept : calls_(std::exchange(other.calls_, nullptr)) {}
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
      if (calls_ != nullptr) calls_->ended();
    }
    /// Whether it came before close().
    explicit operator bool() const { return calls_ != nullptr; }

   private:
    friend class RunningCalls;
    explicit Ticket(RunningCalls* calls) : calls_(calls) {}
    RunningCalls* calls_;
  };

  [[nodiscard]] Ticket begin();

  /// From now on no call begins.
  void close();
  /// Blocks until none is left; false where some is after that time.
  bool wait_until_none(std::chrono::milliseconds time);

 private:
  void ended();

  std::mutex mutex_;
  std::condition_variable none_left_;
  std::size_t running_ = 0;
  bool closed_ = false;
};

}  // namespace evictd::proxy
