#include "events/turns.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace asio = boost::asio;

namespace evictd::events {
namespace {

/// So many followers of a burst get half of the reactor's time. A crowd, for which all of it would not do, gets a
/// third: the machine has to do with what comes of each turn, too.
constexpr std::size_t few = 16;

}  // namespace

Turns::Turns(asio::any_io_executor reactor, std::chrono::microseconds slice)
    : reactor_(std::move(reactor)), rest_timer_(reactor_), slice_(slice) {}

void Turns::queue(const std::shared_ptr<Taker>& taker) {
  if (std::exchange(taker->queued, true)) return;
  queue_.push_back(taker);
  if (!std::exchange(scheduled_, true)) post_run();
}

void Turns::wait(const std::shared_ptr<Taker>& taker) {
  if (!std::exchange(taker->waiting, true)) waiting_.push_back(taker);
}

void Turns::announce() {
  announced_ = true;
  if (!std::exchange(scheduled_, true)) post_run();
}

asio::awaitable<bool> Turns::turn() {
  if (stopped_) co_return false;
  auto initiate = [self = shared_from_this()](auto handler) {
    self->queue(self->add_coroutine(Handler(std::move(handler))));
  };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(bool)>(std::move(initiate),
                                                                                     asio::use_awaitable);
}

asio::awaitable<bool> Turns::turn(std::shared_ptr<Bell> bell) {
  if (stopped_) co_return false;
  auto initiate = [self = shared_from_this(), bell](auto handler) {
    self->queue_once_rung(*bell, self->add_coroutine(Handler(std::move(handler))));
  };
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(bool)>(std::move(initiate),
                                                                                     asio::use_awaitable);
}

void Turns::Bell::ring() {
  rung_ = true;
  const auto turns = turns_.lock();
  const auto taker = taker_.lock();
  if (turns && taker) turns->queue(taker);
}

void Turns::queue_once_rung(Bell& bell, const std::shared_ptr<Taker>& taker) {
  bell.turns_ = weak_from_this();
  bell.taker_ = taker;
  if (bell.rung_) queue(taker);
}

std::shared_ptr<Turns::Taker> Turns::add_coroutine(Handler handler) {
  const auto taker = std::make_shared<Taker>();
  taker->take = [this, key = taker.get()] {
    auto waiting = coroutines_.extract(key);
    std::move(waiting.mapped().handler)(true);
  };
  coroutines_.emplace(taker.get(), Waiting{.taker = taker, .handler = std::move(handler)});
  return taker;
}

void Turns::forget_one() {
  if (++gone_ * 2 <= waiting_.size()) return;  // so each one that goes costs a constant time
  std::erase_if(waiting_, [](const auto& taker) { return taker.expired(); });
  gone_ = 0;
}

void Turns::stop() {
  queue_.clear();
  waiting_.clear();
  announced_ = false;
  stopped_ = true;
  rest_timer_.cancel();
  for (auto& [key, waiting] : std::exchange(coroutines_, {})) std::move(waiting.handler)(false);
}

void Turns::post_run() {
  rest_timer_.expires_at(std::chrono::steady_clock::now());
  asio::post(reactor_, [self = shared_from_this()] { self->run(); });
}

void Turns::queue_waiting() {
  for (const auto& entry : std::exchange(waiting_, {})) {
    const auto taker = entry.lock();
    if (!taker) continue;
    taker->waiting = false;
    if (!std::exchange(taker->queued, true)) queue_.push_back(entry);
  }
  gone_ = 0;
}

void Turns::run() {
  // By the clock, and from when the slice was due: where others want the processor, too, it takes far longer than it
  // works, and then it has to leave more of it to be run at once when an eviction needs it.
  const auto begin = std::chrono::steady_clock::now();
  auto now = begin;
  if (std::exchange(announced_, false)) queue_waiting();
  while (!queue_.empty()) {
    const auto taker = queue_.front().lock();  // holds it for its turn: it may end in there
    queue_.pop_front();
    if (taker) {
      taker->queued = false;
      taker->take();
    }
    now = std::chrono::steady_clock::now();
    if (now - begin >= slice_) break;
  }
  const auto worked = now - rest_timer_.expiry();
  if (!queue_.empty()) return rest(queue_.size() > few ? 2 * worked : worked);
  if (announced_) return post_run();
  scheduled_ = false;
}

void Turns::rest(std::chrono::steady_clock::duration time) {
  constexpr std::chrono::milliseconds longest{5};  // a subscriber who follows still sees it as at once
  rest_timer_.expires_after(std::min<std::chrono::steady_clock::duration>(time, longest));
  rest_timer_.async_wait([self = shared_from_this()](const boost::system::error_code&) { self->run(); });
}

}  // namespace evictd::events
