#include "api/event_writer.hpp"

#include <grpcpp/server_context.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "api/stream.hpp"  // IWYU pragma: keep

namespace asio = boost::asio;

namespace evictd::api {

EventWriter::EventWriter(grpc::CallbackServerContext& context, asio::any_io_executor reactor,
                         std::shared_ptr<OpenCalls> calls)
    : context_(context), reactor_(std::move(reactor)), calls_(std::move(calls)) {}

void EventWriter::confirm() {
  {
    const std::lock_guard lock(mutex_);
    if (finished_ || last_words_) return;
  }
  StartSendInitialMetadata();
}

void EventWriter::write(events::EventPtr event) {
  const v1::Event* message = event.get();
  {
    const std::lock_guard lock(mutex_);
    if (finished_ || last_words_) return;
    in_flight_ = std::move(event);
  }
  StartWrite(message);
}

void EventWriter::finish(const grpc::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (finished_ || last_words_) return;
    if (in_flight_) {
      last_words_ = status;
      return;
    }
    finished_ = true;
  }
  Finish(status);
}

void EventWriter::cut_off(const grpc::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (!finished_) context_.TryCancel();  // makes the write fail, so OnWriteDone comes
  }
  finish(status);
}

void EventWriter::OnWriteDone(bool ok) {
  events::EventPtr sent;  // destroyed after the lock is released
  std::optional<grpc::Status> status;
  {
    const std::lock_guard lock(mutex_);
    sent = std::move(in_flight_);
    status = std::exchange(last_words_, std::nullopt);
    if (status) finished_ = true;
  }
  if (status) return Finish(*status);
  asio::post(reactor_, [self = shared_from_this(), ok] {
    if (const auto stream = self->stream_.lock()) stream->written(ok);
  });
}

void EventWriter::OnCancel() {
  asio::post(reactor_, [self = shared_from_this()] {
    if (const auto stream = self->stream_.lock()) stream->peer_left();
  });
}

void EventWriter::OnDone() {
  const auto calls = calls_;  // `remove` may destroy this
  calls->remove(this);
}

}  // namespace evictd::api
