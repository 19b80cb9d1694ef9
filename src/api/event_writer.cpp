#include "api/event_writer.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "api/stream.hpp"  // IWYU pragma: keep

namespace asio = boost::asio;

namespace evictd::api {

void EventWriter::listen(Service& service, grpc::ServerCompletionQueue& queue, std::shared_ptr<const Arrived> arrived) {
  const auto writer = std::make_shared<EventWriter>(service, queue, std::move(arrived));
  writer->self_ = writer;
  writer->context_.AsyncNotifyWhenDone(writer->left_tag_.tag());
  service.RequestStreamEvents(&writer->context_, &writer->request_, &writer->writer_, &queue, &queue,
                              writer->arrived_tag_.tag());
}

EventWriter::EventWriter(Service& service, grpc::ServerCompletionQueue& queue, std::shared_ptr<const Arrived> arrived)
    : service_(service), queue_(queue), arrived_(std::move(arrived)) {}

bool EventWriter::begin(asio::any_io_executor reactor, std::shared_ptr<rpc::OpenCalls> calls) {
  reactor_ = std::move(reactor);
  calls_ = std::move(calls);
  if (calls_->add(shared_from_this())) return true;
  finish(rpc::shutting_down());
  return false;
}

void EventWriter::confirm() {
  const std::lock_guard lock(mutex_);
  if (finished_ || last_words_) return;
  ++asked_for_;
  writer_.SendInitialMetadata(confirmed_tag_.tag());
}

void EventWriter::write(events::EventPtr event) {
  const std::lock_guard lock(mutex_);
  if (finished_ || last_words_) return;
  in_flight_ = std::move(event);
  ++asked_for_;
  writer_.Write(*in_flight_, written_tag_.tag());
}

void EventWriter::finish(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  if (finished_ || last_words_) return;
  if (in_flight_) {
    last_words_ = status;
    return;
  }
  finished_ = true;
  ++asked_for_;
  writer_.Finish(rpc::presentable(status), finished_tag_.tag());
}

void EventWriter::cut_off(const grpc::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (!finished_) context_.TryCancel();  // makes the write fail, so on_written comes
  }
  finish(status);
}

void EventWriter::on_arrived(bool ok) {
  const auto self = shared_from_this();
  if (!ok) {  // the server shuts down; that it was left is told of a call alone
    const std::lock_guard lock(mutex_);
    self_.reset();
    return;
  }
  listen(service_, queue_, arrived_);
  (*arrived_)(self);
}

void EventWriter::on_confirmed(bool /*ok*/) { release(); }

void EventWriter::on_written(bool ok) {
  events::EventPtr sent;  // destroyed after the lock is released
  std::optional<grpc::Status> status;
  {
    const std::lock_guard lock(mutex_);
    sent = std::move(in_flight_);
    status = std::exchange(last_words_, std::nullopt);
  }
  if (status)
    finish(*status);
  else
    asio::post(*reactor_, [weak = weak_from_this(), ok] {
      if (const auto self = weak.lock())
        if (const auto stream = self->stream_.lock()) stream->written(ok);
    });
  release();
}

/// Called for every call: also for one that ends by itself, where the result is not needed any more.
void EventWriter::on_left(bool /*ok*/) {
  if (reactor_)
    asio::post(*reactor_, [weak = weak_from_this()] {
      if (const auto self = weak.lock())
        if (const auto stream = self->stream_.lock()) stream->peer_left();
    });
  release();
}

void EventWriter::on_finished(bool /*ok*/) { release(); }

void EventWriter::release() {
  std::shared_ptr<EventWriter> last_owner;  // destroyed after the lock is released
  {
    const std::lock_guard lock(mutex_);
    if (--asked_for_ > 0 || !finished_) return;
    last_owner = std::move(self_);
  }
  if (calls_) calls_->remove(this);
}

}  // namespace evictd::api
