#pragma once
#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "evictd.grpc.pb.h"
#include "rpc/server/call_budget.hpp"
#include "rpc/server/completion.hpp"
#include "rpc/server/open_calls.hpp"

namespace evictd::api {

/// gRPC's side of a call that is answered by a stream of messages: one write at a time, the message held until gRPC is
/// done with it, Finish exactly once and never beside a write.
///
/// Its own rules hold without the reactor, so a server can end its calls while the reactor stands still. Everything
/// else that the queue's thread hears it posts to the Listener: `written(ok)`, not ok where the peer is gone, and
/// `peer_left()`. It owns itself until gRPC has told all that it was asked for; OpenCalls has a share from begin() on.
///
/// Call is the class that derives from this. Where `listen` is called, Listener must be complete.
template <class Call, class Listener, class Message, class GrpcStream>
class WritingCall : public rpc::OpenCall, public std::enable_shared_from_this<Call> {
 public:
  using Service = v1::EvictionService::AsyncService;
  /// Given each call on the queue's thread: it either begins it or ends it.
  using Arrived = std::function<void(const std::shared_ptr<Call>&)>;
  using MessagePtr = std::shared_ptr<const Message>;

  /// Takes calls until the server shuts down. `service` and `queue` must outlive the server.
  static void listen(Service& service, grpc::ServerCompletionQueue& queue, std::shared_ptr<const Arrived> arrived) {
    const std::shared_ptr<WritingCall> call = std::make_shared<Call>(service, queue, std::move(arrived));
    call->self_ = call;
    call->context_.AsyncNotifyWhenDone(call->left_tag_.tag());
    call->request(service, call->context_, call->stream_, queue, call->arrived_tag_.tag());
  }

  /// By `listen` alone.
  WritingCall(Service& service, grpc::ServerCompletionQueue& queue, std::shared_ptr<const Arrived> arrived)
      : service_(service), queue_(queue), arrived_(std::move(arrived)) {}

  [[nodiscard]] const grpc::ServerContext& context() const { return context_; }

  /// `place`, where the call takes one, is held until it is over. False: the server shuts down, and the call has ended.
  /// On the queue's thread.
  [[nodiscard]] bool begin(boost::asio::any_io_executor reactor, std::shared_ptr<rpc::OpenCalls> calls,
                           rpc::CallBudget::Place place = {}) {
    reactor_ = std::move(reactor);
    calls_ = std::move(calls);
    place_ = std::move(place);
    if (calls_->add(this->shared_from_this())) return true;
    finish(rpc::shutting_down());
    return false;
  }
  /// Who is told. On the reactor.
  void attach(std::weak_ptr<Listener> listener) { listener_ = std::move(listener); }

  /// Tells the client that its call stands. On the reactor, once, before the first write.
  void confirm() {
    ask([this](GrpcStream& stream) { stream.SendInitialMetadata(confirmed_tag_.tag()); });
  }
  /// Sends one; the listener hears `written` afterwards. On the reactor, with no other write under way.
  void write(MessagePtr message) {
    ask([&](GrpcStream& stream) {
      in_flight_ = std::move(message);
      stream.Write(*in_flight_, written_tag_.tag());
    });
  }
  /// Ends the call, after the write under way if there is one; a read under way ends with it. Later calls do nothing.
  void finish(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (finished_ || last_words_) return;
    if (in_flight_) {
      last_words_ = status;
      return;
    }
    finished_ = true;
    ++asked_for_;
    stream_.Finish(rpc::presentable(status), finished_tag_.tag());
  }
  /// As `finish`, but without waiting for the peer to take the write under way: it sees CANCELLED.
  void cut_off(const grpc::Status& status) {
    {
      const std::lock_guard lock(mutex_);
      if (!finished_) context_.TryCancel();  // makes the write fail, so on_written comes
    }
    finish(status);
  }

  void abort(const grpc::Status& status) override { finish(status); }

 protected:
  /// Has `begin(stream)`, which gives away one tag, ask something of gRPC; not once the call ends. Whatever the tag
  /// calls ends with release(). Any thread.
  template <class Begin>
  void ask(Begin begin) {
    const std::lock_guard lock(mutex_);
    if (finished_ || last_words_) return;
    ++asked_for_;
    begin(stream_);
  }
  /// One of those that were asked for has come. On the queue's thread.
  void release() {
    std::shared_ptr<WritingCall> last_owner;  // destroyed after the lock is released
    {
      const std::lock_guard lock(mutex_);
      if (--asked_for_ > 0 || !finished_) return;
      last_owner = std::move(self_);
    }
    if (calls_) calls_->remove(this);
  }
  /// Has `what(listener)` called on the reactor, if the listener is there. On the queue's thread.
  template <class What>
  void tell(What what) {
    if (!reactor_) return;
    boost::asio::post(*reactor_, [weak = this->weak_from_this(), what = std::move(what)] {
      if (const std::shared_ptr<WritingCall> self = weak.lock())
        if (const auto listener = self->listener_.lock()) what(*listener);
    });
  }

 private:
  using Tag = rpc::OwnCompletion<WritingCall>;

  /// Asks gRPC for the next call, of which `arrived` tells.
  virtual void request(Service& service, grpc::ServerContext& context, GrpcStream& stream,
                       grpc::ServerCompletionQueue& queue, void* arrived) = 0;

  // All on the queue's thread.
  void on_arrived(bool ok) {
    const auto self = this->shared_from_this();
    if (!ok) {  // the server shuts down; that it was left is told of a call alone
      const std::lock_guard lock(mutex_);
      self_.reset();
      return;
    }
    listen(service_, queue_, arrived_);
    (*arrived_)(self);
  }
  void on_confirmed(bool /*ok*/) { release(); }
  void on_written(bool ok) {
    MessagePtr sent;  // destroyed after the lock is released
    std::optional<grpc::Status> status;
    {
      const std::lock_guard lock(mutex_);
      sent = std::move(in_flight_);
      status = std::exchange(last_words_, std::nullopt);
    }
    if (status)
      finish(*status);
    else
      tell([ok](Listener& listener) { listener.written(ok); });
    release();
  }
  /// Called for every call: also for one that ends by itself, where the result is not needed any more.
  void on_left(bool /*ok*/) {
    tell([](Listener& listener) { listener.peer_left(); });
    release();
  }
  void on_finished(bool /*ok*/) { release(); }

  Service& service_;
  grpc::ServerCompletionQueue& queue_;
  std::shared_ptr<const Arrived> arrived_;
  std::shared_ptr<rpc::OpenCalls> calls_;
  rpc::CallBudget::Place place_;
  std::optional<boost::asio::any_io_executor> reactor_;
  std::weak_ptr<Listener> listener_;  // touched on the reactor only

  grpc::ServerContext context_;
  GrpcStream stream_{&context_};
  Tag arrived_tag_{*this, &WritingCall::on_arrived};
  Tag confirmed_tag_{*this, &WritingCall::on_confirmed};
  Tag written_tag_{*this, &WritingCall::on_written};
  Tag left_tag_{*this, &WritingCall::on_left};
  Tag finished_tag_{*this, &WritingCall::on_finished};

  std::mutex mutex_;  // for all that follows
  std::shared_ptr<WritingCall> self_;
  int asked_for_ = 1;  // of gRPC, and not told yet: that it was left
  MessagePtr in_flight_;
  std::optional<grpc::Status> last_words_;  // to finish with once the write is done
  bool finished_ = false;
};

}  // namespace evictd::api
