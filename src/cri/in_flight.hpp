#pragma once
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <unordered_set>

namespace grpc {
class ClientContext;
}

namespace evictd::cri {

/// The calls of one client that are under way, so that it can end them all before it goes.
///
/// Besides the messages themselves this is all that the reactor shares with gRPC's threads: the one place of the client
/// with a lock. Everything is for the reactor's thread but returned().
class InFlight {
 public:
  void began(grpc::ClientContext& context);
  /// The call's result has reached the reactor. The context may go after this.
  void ended(grpc::ClientContext& context);
  /// Cancels every call. They end as cancelled, a little later. Nothing may be begun after this.
  void cancel_all();
  [[nodiscard]] bool closed() const { return closed_; }

  /// gRPC is asked for something of a call, and borrows what that takes.
  void lent();
  /// gRPC has handed it back: the last thing its thread does with it. Any thread.
  void returned();
  /// Blocks until gRPC has handed everything back; after cancel_all() that takes well below a millisecond.
  void wait_until_returned();

 private:
  std::unordered_set<grpc::ClientContext*> contexts_;
  bool closed_ = false;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::size_t with_grpc_ = 0;
};

}  // namespace evictd::cri
