#pragma once
#include <grpcpp/completion_queue.h>

#include <thread>

namespace evictd::rpc {

/// Something that gRPC does for us and tells of by a completion queue.
class Completion {
 public:
  /// Called by the queue's thread, once for each time that tag() was given away. `ok` is what gRPC says; it depends on
  /// what was asked for. Nothing is thrown.
  virtual void complete(bool ok) = 0;

  /// What gRPC is given. This object must live until it comes back.
  [[nodiscard]] void* tag() { return this; }

 protected:
  ~Completion() = default;
};

/// Completes one of its owner's operations by calling a member function of the owner.
template <class Owner>
class OwnCompletion final : public Completion {
 public:
  using Function = void (Owner::*)(bool ok);
  OwnCompletion(Owner& owner, Function function) : owner_(owner), function_(function) {}
  void complete(bool ok) override { (owner_.*function_)(ok); }

 private:
  Owner& owner_;
  Function function_;
};

/// The thread that takes what a completion queue hands back. It sleeps for as long as there is nothing, while the two
/// threads or more that gRPC 1.51 begins for its callbacks wake eleven times a second in an idle process.
class CompletionThread {
 public:
  /// All tags of the queue must come from Completion::tag(). `name`: a literal of at most 15 characters, for ps(1).
  CompletionThread(grpc::CompletionQueue& queue, const char* name);
  /// Shuts the queue down and waits until it is empty: whatever is under way must be about to end, and nothing new may
  /// be begun.
  ~CompletionThread();
  CompletionThread(const CompletionThread&) = delete;
  CompletionThread& operator=(const CompletionThread&) = delete;

 private:
  grpc::CompletionQueue& queue_;
  std::thread thread_;
};

}  // namespace evictd::rpc
