#include "api/pre_kill_call.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "api/pre_kill_stream.hpp"  // IWYU pragma: keep

namespace asio = boost::asio;

namespace evictd::api {

void PreKillCall::listen(Service& service, grpc::ServerCompletionQueue& queue, std::shared_ptr<const Arrived> arrived) {
  const auto call = std::make_shared<PreKillCall>(service, queue, std::move(arrived));
  call->self_ = call;
  call->context_.AsyncNotifyWhenDone(call->left_tag_.tag());
  service.RequestPreKill(&call->context_, &call->stream_call_, &queue, &queue, call->arrived_tag_.tag());
}

PreKillCall::PreKillCall(Service& service, grpc::ServerCompletionQueue& queue, std::shared_ptr<const Arrived> arrived)
    : service_(service), queue_(queue), arrived_(std::move(arrived)) {}

bool PreKillCall::begin(asio::any_io_executor reactor, std::shared_ptr<rpc::OpenCalls> calls,
                        rpc::CallBudget::Place place) {
  reactor_ = std::move(reactor);
  calls_ = std::move(calls);
  place_ = std::move(place);
  if (calls_->add(shared_from_this())) return true;
  finish(rpc::shutting_down());
  return false;
}

void PreKillCall::confirm() {
  const std::lock_guard lock(mutex_);
  if (finished_ || last_words_) return;
  ++asked_for_;
  stream_call_.SendInitialMetadata(confirmed_tag_.tag());
}

void PreKillCall::read() {
  const std::lock_guard lock(mutex_);
  if (finished_ || last_words_) return;
  ++asked_for_;
  incoming_.Clear();
  stream_call_.Read(&incoming_, read_tag_.tag());
}

void PreKillCall::write(IntentPtr intent) {
  const std::lock_guard lock(mutex_);
  if (finished_ || last_words_) return;
  in_flight_ = std::move(intent);
  ++asked_for_;
  stream_call_.Write(*in_flight_, written_tag_.tag());
}

void PreKillCall::finish(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  if (finished_ || last_words_) return;
  if (in_flight_) {
    last_words_ = status;
    return;
  }
  finished_ = true;
  ++asked_for_;
  stream_call_.Finish(rpc::presentable(status), finished_tag_.tag());  // a read under way ends with it
}

void PreKillCall::cut_off(const grpc::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (!finished_) context_.TryCancel();  // makes the write fail, so on_written comes
  }
  finish(status);
}

void PreKillCall::on_arrived(bool ok) {
  const auto self = shared_from_this();
  if (!ok) {  // the server shuts down; that it was left is told of a call alone
    const std::lock_guard lock(mutex_);
    self_.reset();
    return;
  }
  listen(service_, queue_, arrived_);
  (*arrived_)(self);
}

void PreKillCall::on_confirmed(bool /*ok*/) { release(); }

void PreKillCall::on_read(bool ok) {
  if (ok)
    tell([answer = std::make_shared<const v1::PreKillAnswer>(std::move(incoming_))](PreKillStream& stream) {
      stream.received(*answer);
    });
  else
    tell([](PreKillStream& stream) { stream.peer_left(); });
  release();
}

void PreKillCall::on_written(bool ok) {
  IntentPtr sent;  // destroyed after the lock is released
  std::optional<grpc::Status> status;
  {
    const std::lock_guard lock(mutex_);
    sent = std::move(in_flight_);
    status = std::exchange(last_words_, std::nullopt);
  }
  if (status)
    finish(*status);
  else
    tell([ok](PreKillStream& stream) { stream.written(ok); });
  release();
}

/// Called for every call: also for one that ends by itself, where the result is not needed any more.
void PreKillCall::on_left(bool /*ok*/) {
  tell([](PreKillStream& stream) { stream.peer_left(); });
  release();
}

void PreKillCall::on_finished(bool /*ok*/) { release(); }

void PreKillCall::tell(std::move_only_function<void(PreKillStream&)> what) {
  if (!reactor_) return;
  asio::post(*reactor_, [weak = weak_from_this(), what = std::move(what)]() mutable {
    if (const auto self = weak.lock())
      if (const auto stream = self->stream_.lock()) what(*stream);
  });
}

void PreKillCall::release() {
  std::shared_ptr<PreKillCall> last_owner;  // destroyed after the lock is released
  {
    const std::lock_guard lock(mutex_);
    if (--asked_for_ > 0 || !finished_) return;
    last_owner = std::move(self_);
  }
  if (calls_) calls_->remove(this);
}

}  // namespace evictd::api
