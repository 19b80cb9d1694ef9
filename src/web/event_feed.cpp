#include "web/event_feed.hpp"

#include <evictd.pb.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "async/offload.hpp"
#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "events/event_log.hpp"
#include "events/status_source.hpp"
#include "web/feed_text.hpp"

namespace asio = boost::asio;

namespace evictd::web {
namespace {

/// Events that become one message; more of them wait in the log, whose bound holds.
constexpr std::size_t events_at_once = 64;

/// The last events of the log.
std::vector<events::EventPtr> last_events(events::EventLog& log, std::size_t count) {
  const auto reader = log.subscribe(log.before_last(count), [] {});
  std::vector<events::EventPtr> events;
  while (auto event = reader->next())
    if (event->kind() != v1::Event::GAP) events.push_back(std::move(event));
  return events;
}

}  // namespace

/// What one page has not been sent yet.
class EventFeed::Watcher final : public Messages {
 public:
  Watcher(std::shared_ptr<Hub> hub, const asio::any_io_executor& reactor)
      : hub_{std::move(hub)}, change_{reactor, asio::steady_timer::time_point::max()} {}
  ~Watcher() override;

  asio::awaitable<MessagePtr> next() override {
    while (queue_.empty() && !over_) co_await async::wait(change_);
    if (over_) co_return nullptr;
    auto message = std::move(queue_.front());
    queue_.pop_front();
    co_return message;
  }

  void send(MessagePtr message, std::size_t most) {
    if (queue_.size() >= most) return end();
    queue_.push_back(std::move(message));
    change_.cancel();
  }
  void end() {
    over_ = true;
    queue_.clear();
    change_.cancel();
  }

  std::uint64_t id = 0;
  bool has_snapshot = false;  // what comes before it is in it

 private:
  std::shared_ptr<Hub> hub_;
  asio::steady_timer change_;  // cancelled when there is something to send
  std::deque<MessagePtr> queue_;
  bool over_ = false;
};

/// The watchers, and the work for them.
class EventFeed::Hub : public std::enable_shared_from_this<Hub> {
 public:
  Hub(asio::any_io_executor reactor, asio::any_io_executor workers, events::EventLog& log, events::StatusSource& status,
      OnClientFailure on_client_failure, FeedLimits limits)
      : reactor_{std::move(reactor)},
        workers_{std::move(workers)},
        log_{&log},
        status_{&status},
        on_client_failure_{std::move(on_client_failure)},
        limits_{limits},
        timer_{reactor_} {}

  std::unique_ptr<Messages> add() {
    if (log_ == nullptr || watchers_.size() >= limits_.watchers) return nullptr;
    if (std::cmp_greater(of_snapshots_.use_count(), 2 * limits_.watchers)) return nullptr;
    auto watcher = std::make_unique<Watcher>(shared_from_this(), reactor_);
    watcher->id = ++last_id_;
    watchers_.push_back(watcher.get());
    if (subscription_ == nullptr) begin();
    spawn(send_snapshot(shared_from_this(), of_snapshots_, watcher->id, status_->status(),
                        last_events(*log_, limits_.history)));
    return watcher;
  }

  void forget(const Watcher* watcher) {
    std::erase(watchers_, watcher);
    if (watchers_.empty()) pause();
  }

  void close() {
    log_ = nullptr;
    status_ = nullptr;
    pause();
    for (auto* watcher : watchers_) watcher->end();
  }

  [[nodiscard]] std::size_t watchers() const { return watchers_.size(); }

 private:
  void begin() {
    subscription_ = log_->subscribe(log_->last_sequence(), [this] { tell_events(); });
    tell_events();
    tick();
  }

  void pause() {
    subscription_.reset();
    timer_.cancel();
  }

  void tick() {
    timer_.expires_after(limits_.interval);
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
      const auto self = weak.lock();
      if (error || self == nullptr || self->subscription_ == nullptr) return;
      if (!std::exchange(self->status_under_way_, true)) self->spawn(send_status(self));
      self->tick();
    });
  }

  /// Called again when there is more to read, or what was read is written.
  void tell_events() {
    if (subscription_ == nullptr || events_under_way_) return;
    std::vector<events::EventPtr> events;
    while (events.size() < events_at_once) {
      auto event = subscription_->next();
      if (event == nullptr) break;
      events.push_back(std::move(event));
    }
    if (events.empty()) return;
    events_under_way_ = true;
    spawn(send_events(shared_from_this(), std::move(events)));
  }

  static asio::awaitable<void> send_snapshot(std::shared_ptr<Hub> self, std::shared_ptr<const char> /*share*/,
                                             std::uint64_t id, v1::NodeStatus status,
                                             std::vector<events::EventPtr> events) {
    auto make = [status = std::move(status), events = std::move(events)] { return snapshot_text(status, events); };
    auto text = co_await async::offload(self->workers_, std::move(make));
    const auto watcher = std::ranges::find(self->watchers_, id, &Watcher::id);
    if (watcher == self->watchers_.end()) co_return;
    (*watcher)->has_snapshot = true;
    (*watcher)->send(std::make_shared<const std::string>(std::move(text)), self->limits_.queue);
  }

  static asio::awaitable<void> send_status(std::shared_ptr<Hub> self) {
    if (self->status_ == nullptr) co_return;
    auto make = [status = self->status_->status()] { return status_text(status); };
    auto text = co_await async::offload(self->workers_, std::move(make));
    self->send_all(std::move(text));
    self->status_under_way_ = false;
  }

  static asio::awaitable<void> send_events(std::shared_ptr<Hub> self, std::vector<events::EventPtr> events) {
    auto make = [events = std::move(events)] { return events_text(events); };
    auto text = co_await async::offload(self->workers_, std::move(make));
    self->send_all(std::move(text));
    self->events_under_way_ = false;
    self->tell_events();
  }

  void send_all(std::string text) {
    const auto message = std::make_shared<const std::string>(std::move(text));
    for (auto* watcher : watchers_)
      if (watcher->has_snapshot) watcher->send(message, limits_.queue);
  }

  void spawn(asio::awaitable<void> work) {
    async::spawn_contained(reactor_, std::move(work),
                           [self = shared_from_this()](const std::string& reason) { self->give_up(reason); });
  }

  /// A text could not be made, so every page has missed something. Each comes back by itself, and begins anew.
  void give_up(const std::string& reason) {
    on_client_failure_(reason);
    status_under_way_ = false;
    events_under_way_ = false;
    for (auto* watcher : watchers_) watcher->end();
  }

  asio::any_io_executor reactor_;
  asio::any_io_executor workers_;
  events::EventLog* log_;         // null: it may be gone
  events::StatusSource* status_;  // null: it may be gone
  OnClientFailure on_client_failure_;
  FeedLimits limits_;
  asio::steady_timer timer_;
  std::vector<Watcher*> watchers_;
  std::unique_ptr<events::Subscription> subscription_;  // while a client watches
  std::uint64_t last_id_ = 0;
  std::shared_ptr<const char> of_snapshots_ = std::make_shared<const char>();  // each that is under way has a share
  bool status_under_way_ = false;
  bool events_under_way_ = false;
};

EventFeed::Watcher::~Watcher() { hub_->forget(this); }

EventFeed::EventFeed(asio::any_io_executor reactor, asio::any_io_executor workers, events::EventLog& log,
                     events::StatusSource& status, OnClientFailure on_client_failure, FeedLimits limits)
    : hub_{std::make_shared<Hub>(std::move(reactor), std::move(workers), log, status, std::move(on_client_failure),
                                 limits)} {}

EventFeed::~EventFeed() { hub_->close(); }

std::unique_ptr<Messages> EventFeed::watch() { return hub_->add(); }
std::size_t EventFeed::watchers() const { return hub_->watchers(); }

}  // namespace evictd::web
