#include "api/stream.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <limits>
#include <utility>

#include "async/spawn.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;

namespace evictd::api {
namespace {

/// How many events a stream looks at in one turn for one that passes its filter: some 100 µs, and so many
/// that a stream of few kinds keeps up with all that happens while a thousand others have their turns.
constexpr int most_looked_at = 8192;

grpc::Status gone() { return {grpc::StatusCode::CANCELLED, "the subscriber went away"}; }

/// For people: "MemoryPressure; 12 pods, 1 eviction under way".
std::string summary(const v1::NodeStatus& status) {
  std::string conditions;
  for (const auto& condition : status.conditions())
    if (condition.status()) conditions += (conditions.empty() ? "" : ", ") + condition.type();
  const auto counted = [](std::uint64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  return fmt::format("{}; {}, {} under way", conditions.empty() ? "no pressure" : conditions,
                     counted(status.pods(), "pod"),
                     counted(static_cast<std::uint64_t>(status.in_flight_size()), "eviction"));
}

}  // namespace

EventStream::EventStream(EventStreams& streams, std::shared_ptr<EventWriter> writer, StreamPlan plan)
    : streams_(streams),
      writer_(std::move(writer)),
      plan_(std::move(plan)),
      taker_(std::make_shared<events::Turns::Taker>([this] {
        if (go_on_) std::exchange(go_on_, nullptr)(true);
      })),
      write_timer_(streams.reactor_),
      heartbeat_timer_(streams.reactor_) {}

void EventStream::begin(std::optional<grpc::Status> refusal) {
  admitted_ = !refusal;
  if (admitted_) ++streams_.admitted_;
  last_words_ = std::move(refusal);
  const auto self = shared_from_this();
  async::spawn_contained(streams_.reactor_, run(self), [self](const std::string& reason) {
    const auto status = rpc::given_up(reason);
    if (!self->closed_) self->end(status);
  });
}

void EventStream::close() {
  closed_ = true;
  subscription_.reset();
  writer_.reset();
  write_timer_.cancel();
  heartbeat_timer_.cancel();
  if (go_on_) std::exchange(go_on_, nullptr)(false);
}

void EventStream::written(bool ok) {
  writing_ = false;
  if (!ok) last_words_ = gone();
  ask_for_turn();
}

void EventStream::peer_left() {
  last_words_ = gone();
  ask_for_turn();
}

void EventStream::ask_for_turn() {
  if (!closed_) streams_.log_.turns().queue(taker_);
}

asio::awaitable<bool> EventStream::turn() {
  if (closed_) co_return false;
  auto initiate = [this](auto handler) { go_on_ = std::move(handler); };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(bool)>(std::move(initiate),
                                                                                     asio::use_awaitable);
}

asio::awaitable<void> EventStream::run(std::shared_ptr<EventStream> self) {
  self->ask_for_turn();
  const auto status = co_await self->tell();
  if (status) self->end(*status);
}

asio::awaitable<std::optional<grpc::Status>> EventStream::tell() {
  if (!co_await turn()) co_return std::nullopt;
  if (last_words_) co_return last_words_;
  if (auto refused = subscribe()) co_return refused;
  for (;;) {
    if (auto message = next_message())
      send(std::move(message));
    else if (subscription_->position() >= end_after_)
      co_return grpc::Status::OK;
    do {  // until the message is written; or there is something to look at, be it for the second time
      if (!co_await turn()) co_return std::nullopt;
      if (last_words_) co_return last_words_;
    } while (writing_);
  }
}

std::optional<grpc::Status> EventStream::subscribe() {
  const std::uint64_t last = streams_.log_.last_sequence();
  const std::uint64_t after = plan_.after.value_or(last);
  if (after > last)
    return grpc::Status(grpc::StatusCode::OUT_OF_RANGE,
                        fmt::format("event {} has not happened yet, the newest is {}: numbers begin anew when evictd "
                                    "restarts without its history",
                                    after, last));
  end_after_ = plan_.follow ? std::numeric_limits<std::uint64_t>::max() : last;
  subscription_ = streams_.log_.subscribe(after, taker_);
  if (plan_.snapshot) snapshot_ = make_snapshot();  // in this very turn: what the log holds up to `last` is in it
  last_message_ = std::chrono::steady_clock::now();
  if (plan_.heartbeat) watch_silence(last_message_ + *plan_.heartbeat);
  writer_->confirm();
  return std::nullopt;
}

/// What the subscriber is to get now. Null: nothing yet, or there is more to look at in another turn, or the end.
events::EventPtr EventStream::next_message() {
  if (snapshot_) return std::exchange(snapshot_, nullptr);
  for (int looked_at = 0; subscription_->position() < end_after_; ++looked_at) {
    if (looked_at == most_looked_at) {
      ask_for_turn();
      break;
    }
    auto event = subscription_->next();
    if (!event) break;
    if (plan_.filter.passes(*event)) return event;
  }
  return heartbeat_due_ && subscription_->position() < end_after_ ? make_heartbeat() : nullptr;
}

events::EventPtr EventStream::make_snapshot() const {
  auto event = std::make_shared<v1::Event>();
  event->set_kind(v1::Event::SNAPSHOT);
  event->set_sequence(subscription_->position());
  auto& status = *event->mutable_snapshot();
  status = streams_.status_.status();
  status.set_last_event_sequence(event->sequence());
  event->set_message(summary(status));
  events::stamp(*event);
  return event;
}

events::EventPtr EventStream::make_heartbeat() const {
  auto event = std::make_shared<v1::Event>();
  event->set_kind(v1::Event::HEARTBEAT);
  event->set_sequence(subscription_->position());
  event->set_message(fmt::format("nothing up to event {}", event->sequence()));
  events::stamp(*event);
  return event;
}

void EventStream::send(events::EventPtr event) {
  writing_ = true;
  writing_sequence_ = event->sequence();
  heartbeat_due_ = false;
  last_message_ = std::chrono::steady_clock::now();
  watch_write();
  writer_->write(std::move(event));
}

/// One timer for as long as there are writes, not one for each: it looks whether the write that is under way has been
/// so for too long.
void EventStream::watch_write() {
  if (std::exchange(write_watched_, true)) return;
  write_timer_.expires_at(last_message_ + streams_.limits_.write_timeout);
  write_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || self->closed_) return;
    self->write_watched_ = false;
    if (!self->writing_) return;
    const auto timeout = self->streams_.limits_.write_timeout;
    if (std::chrono::steady_clock::now() < self->last_message_ + timeout) return self->watch_write();
    os::log_warning("api: a subscriber left event {} unread for {} ms and is cut off", self->writing_sequence_,
                    timeout.count());
    self->last_words_.emplace(grpc::StatusCode::CANCELLED, "events were left unread for too long");
    self->writer_->cut_off(*self->last_words_);
    self->ask_for_turn();
  });
}

/// What is being written is no silence.
void EventStream::watch_silence(std::chrono::steady_clock::time_point until) {
  heartbeat_timer_.expires_at(until);
  heartbeat_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || self->closed_) return;
    const auto now = std::chrono::steady_clock::now();
    const auto due = self->last_message_ + *self->plan_.heartbeat;
    if (now < due) return self->watch_silence(due);
    if (!self->writing_) {
      self->heartbeat_due_ = true;
      self->ask_for_turn();
    }
    self->watch_silence(now + *self->plan_.heartbeat);
  });
}

void EventStream::end(const grpc::Status& status) {
  write_timer_.cancel();
  heartbeat_timer_.cancel();
  subscription_.reset();
  writer_->finish(status);
  if (admitted_) --streams_.admitted_;
  streams_.streams_.erase(shared_from_this());
}

EventStreams::EventStreams(events::EventLog& log, StreamLimits limits, events::StatusSource& status)
    : log_(log), reactor_(log.get_executor()), limits_(limits), status_(status) {}

void EventStreams::open(const std::shared_ptr<EventWriter>& writer, const std::shared_ptr<rpc::OpenCalls>& calls,
                        Role role) {
  if (!writer->begin(reactor_, calls)) return;
  auto plan = read_stream_request(writer->take_request());
  if (!plan) return writer->finish({grpc::StatusCode::INVALID_ARGUMENT, plan.error().message});
  asio::post(reactor_,
             [weak = weak_from_this(), weak_writer = std::weak_ptr(writer), plan = *std::move(plan), role]() mutable {
               const auto self = weak.lock();
               const auto writer = weak_writer.lock();
               if (self && writer) self->begin(writer, std::move(plan), role);
             });
}

void EventStreams::close() {
  closed_ = true;
  admitted_ = 0;
  for (const auto& stream : std::exchange(streams_, {})) stream->close();
}

void EventStreams::begin(const std::shared_ptr<EventWriter>& writer, StreamPlan plan, Role role) {
  if (closed_) return writer->finish(rpc::shutting_down());
  std::optional<grpc::Status> refusal;
  const auto most = limits_.subscribers + (role == Role::Admin ? limits_.of_administrators : 0);
  if (admitted_ >= most)
    refusal.emplace(grpc::StatusCode::RESOURCE_EXHAUSTED,
                    fmt::format("{} subscribers already: no more are served", most));
  const auto stream = *streams_.insert(std::make_shared<EventStream>(*this, writer, std::move(plan))).first;
  writer->attach(stream);
  stream->begin(std::move(refusal));
}

}  // namespace evictd::api
