#include "evictctl/top/feed.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <utility>

namespace evictd::ctl {
namespace {

using namespace std::chrono_literals;

constexpr auto interval = 1s;
constexpr auto refreshed_within = 3s;
constexpr std::size_t events_kept = 200;

bool is_lost(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
         status.error_code() == grpc::StatusCode::CANCELLED;
}

}  // namespace

/// A call with a deadline that ends at once when the feed does.
class Feed::Call {
 public:
  explicit Call(Feed& feed) : feed_{feed} {
    context_.set_deadline(std::chrono::system_clock::now() + refreshed_within);
    const std::lock_guard lock(feed_.mutex_);
    feed_.call_ = &context_;
    if (feed_.stopping_) context_.TryCancel();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    const std::lock_guard lock(feed_.mutex_);
    feed_.call_ = nullptr;
  }
  [[nodiscard]] grpc::ClientContext* context() { return &context_; }

 private:
  Feed& feed_;
  grpc::ClientContext context_;
};

Feed::Feed(Client first, Connect connect, std::string signal)
    : connect_{std::move(connect)},
      news_fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
      client_{std::make_shared<const Client>(std::move(first))},
      signal_{std::move(signal)},
      thread_{[this] { run(); }} {}

Feed::~Feed() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  changed_.notify_all();
  thread_.join();
  tail_.reset();
  ::close(news_fd_);
}

void Feed::take(TopState& state) {
  eventfd_t ignored = 0;
  ::eventfd_read(news_fd_, &ignored);
  const std::lock_guard lock(mutex_);
  state.status = known_.status;
  state.ranking = known_.ranking;
  state.ranking_error = known_.ranking_error;
  state.events = known_.events;
  state.trouble = known_.trouble;
  state.trouble_since = known_.trouble_since;
}

void Feed::choose(const std::string& signal) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(signal_, signal) == signal) return;
  asked_ = true;
  changed_.notify_all();
}

void Feed::run() {
  do {
    if (!client_) {
      auto client = connect_();
      if (client)
        client_ = std::make_shared<const Client>(*std::move(client));
      else
        lose(client.error());
    }
    if (client_) look();
    ::eventfd_write(news_fd_, 1);
  } while (pause());
}

void Feed::look() {
  v1::NodeStatus status;
  if (const auto result = client_->evictions().GetNodeStatus(Call(*this).context(), {}, &status); !result.ok())
    return lose(client_->explain(result));
  v1::RankPodsRequest request;
  {
    const std::lock_guard lock(mutex_);
    request.set_signal(signal_);
    asked_ = false;
  }
  v1::RankPodsResponse ranking;
  const auto result = client_->evictions().RankPods(Call(*this).context(), request, &ranking);
  if (is_lost(result)) return lose(client_->explain(result));
  follow(status.last_event_sequence());
  const std::lock_guard lock(mutex_);
  known_.trouble.clear();
  known_.status = std::move(status);
  known_.ranking = std::move(ranking);
  known_.ranking_error = result.ok() ? "" : client_->explain(result).message;
}

/// The last events are asked for anew with each stream: an agent that was restarted may count from 1 again.
void Feed::follow(std::uint64_t newest) {
  if (tail_ && !tail_->ended()) return;
  tail_.reset();
  {
    const std::lock_guard lock(mutex_);
    known_.events.clear();
  }
  tail_ = std::make_unique<EventTail>(client_, newest > events_kept ? newest - events_kept : 0,
                                      [this](v1::Event event) { add(std::move(event)); });
}

void Feed::lose(const Error& error) {
  tail_.reset();
  client_.reset();
  const std::lock_guard lock(mutex_);
  if (known_.trouble.empty()) known_.trouble_since = std::chrono::system_clock::now();
  known_.trouble = error.message;
}

/// That events before the first one are not kept any more is no news.
void Feed::add(v1::Event event) {
  {
    const std::lock_guard lock(mutex_);
    if (event.kind() == v1::Event::GAP && known_.events.empty()) return;
    known_.events.push_back(std::move(event));
    if (known_.events.size() > events_kept) known_.events.pop_front();
  }
  ::eventfd_write(news_fd_, 1);
}

/// Until it is time to look again; false when it is over.
bool Feed::pause() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, interval, [this] { return stopping_ || asked_; });
  return !stopping_;
}

}  // namespace evictd::ctl
