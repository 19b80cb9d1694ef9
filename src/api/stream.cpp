#include "api/stream.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <limits>
#include <utility>

namespace asio = boost::asio;

namespace evictd::api {

EventStream::EventStream(EventStreams& streams, std::shared_ptr<EventWriter> writer)
    : streams_(streams), writer_(std::move(writer)), write_timer_(streams.reactor_) {}

void EventStream::start(const v1::StreamEventsRequest& request) {
  const std::uint64_t last = streams_.log_.last_sequence();
  const std::uint64_t after = request.has_after_sequence() ? request.after_sequence() : last;
  if (after > last)
    return end({grpc::StatusCode::OUT_OF_RANGE,
                fmt::format("event {} has not happened yet, the newest is {}: numbers begin anew when evictd restarts",
                            after, last)});

  const bool follow = !request.has_follow() || request.follow();
  end_after_ = follow ? std::numeric_limits<std::uint64_t>::max() : last;
  sent_ = after;
  subscription_ = streams_.log_.subscribe(after, [this] { send_next(); });
  writer_->confirm();
  send_next();
}

void EventStream::send_next() {
  if (writing_) return;
  if (sent_ >= end_after_) return end(grpc::Status::OK);
  EventPtr event = subscription_->next();
  if (!event) return;
  sent_ = event->sequence();
  writing_ = true;
  watch_write();
  writer_->write(std::move(event));
}

void EventStream::written(bool ok) {
  writing_ = false;
  write_timer_.cancel();
  if (!ok) return end({grpc::StatusCode::CANCELLED, "the subscriber went away"});
  send_next();
}

void EventStream::watch_write() {
  write_timer_.expires_after(streams_.limits_.write_timeout);
  // Cancelled too late, the handler may run although its write is done and even the next one under way: the number
  // tells.
  write_timer_.async_wait([weak = weak_from_this(), sequence = sent_](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || !self->writing_ || self->sent_ != sequence) return;
    const auto timeout = self->streams_.limits_.write_timeout;
    if (const auto& warn = self->streams_.warn_)
      warn(fmt::format("api: a subscriber left event {} unread for {} ms and is cut off", sequence, timeout.count()));
    self->writer_->cut_off({grpc::StatusCode::CANCELLED, "events were left unread for too long"});
    self->end(grpc::Status::CANCELLED);
  });
}

void EventStream::end(const grpc::Status& status) {
  const auto self = shared_from_this();  // leaving the set may drop the last owner
  write_timer_.cancel();
  subscription_.reset();
  writer_->finish(status);
  streams_.streams_.erase(self);
}

EventStreams::EventStreams(EventLog& log, StreamLimits limits, std::function<void(const std::string&)> warn)
    : log_(log), reactor_(log.get_executor()), limits_(limits), warn_(std::move(warn)) {}

grpc::ServerWriteReactor<v1::Event>* EventStreams::open(grpc::CallbackServerContext& context,
                                                        const std::shared_ptr<OpenCalls>& calls,
                                                        const v1::StreamEventsRequest& request) {
  const auto writer = std::make_shared<EventWriter>(context, reactor_, calls);
  if (!calls->add(writer)) {
    writer->abort(shutting_down());
    return writer.get();
  }
  asio::post(reactor_, [weak = weak_from_this(), writer, request] {
    if (const auto self = weak.lock())
      self->start(writer, request);
    else
      writer->finish(shutting_down());
  });
  return writer.get();
}

void EventStreams::close() {
  closed_ = true;
  streams_.clear();
}

void EventStreams::start(const std::shared_ptr<EventWriter>& writer, const v1::StreamEventsRequest& request) {
  if (closed_) return writer->finish(shutting_down());
  if (streams_.size() >= limits_.subscribers)
    return writer->finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                           fmt::format("{} subscribers already: no more are served", limits_.subscribers)});
  const auto stream = *streams_.insert(std::make_shared<EventStream>(*this, writer)).first;
  writer->attach(stream);
  stream->start(request);
}

}  // namespace evictd::api
