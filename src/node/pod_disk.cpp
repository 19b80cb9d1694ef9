#include "node/pod_disk.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

namespace evictd::node {
namespace asio = boost::asio;
namespace {

/// One walk, and those who wait for it.
struct Walk {
  explicit Walk(const asio::any_io_executor& reactor) : done(reactor, asio::steady_timer::time_point::max()) {}

  bool ended = false;
  asio::steady_timer done;  // never expires: cancelled when the walk ended
};

struct Entry {
  std::shared_ptr<const PodDiskReading> reading{};
  std::shared_ptr<Walk> walk{};  // while one is under way
  bool dirty = false;            // marked since the last walk began
};

}  // namespace

struct PodDisk::State : std::enable_shared_from_this<State> {
  State(asio::any_io_executor reactor_executor, asio::any_io_executor pool_executor, PodDiskSettings given)
      : reactor(std::move(reactor_executor)), pool(std::move(pool_executor)), settings(std::move(given)) {}

  /// Begins a walk of the pod, or joins the one that is under way.
  std::shared_ptr<Walk> start(const PodName& pod) {
    auto& entry = pods[pod.uid];
    if (entry.walk) return entry.walk;
    entry.dirty = false;
    entry.walk = std::make_shared<Walk>(reactor);
    asio::post(pool, [self = shared_from_this(), pod, walk = entry.walk]() mutable {
      WalkBudget budget(self->settings.max_entries, self->settings.max_time, self->stop.get_token());
      auto reading = std::make_shared<const PodDiskReading>(measure_pod_directories(self->settings.roots, pod, budget));
      // Everything shared goes back with it: the last reference to a timer must be let go of by the reactor.
      const auto target = self->reactor;
      asio::post(target, [self = std::move(self), uid = std::move(pod.uid), walk = std::move(walk),
                          reading = std::move(reading)]() mutable { self->finish(uid, *walk, std::move(reading)); });
    });
    return entry.walk;
  }

  void finish(const std::string& uid, Walk& walk, std::shared_ptr<const PodDiskReading> reading) {
    // A pod that was forgotten meanwhile, even if another of its uid came, has nothing to do with this walk.
    if (const auto entry = pods.find(uid); entry != pods.end() && entry->second.walk.get() == &walk) {
      entry->second.walk.reset();
      entry->second.reading = std::move(reading);
    }
    walk.ended = true;
    walk.done.cancel();
  }

  asio::any_io_executor reactor;
  asio::any_io_executor pool;
  PodDiskSettings settings;
  std::stop_source stop;
  std::map<std::string, Entry, std::less<>> pods;
};

PodDisk::PodDisk(asio::any_io_executor reactor, asio::any_io_executor pool, PodDiskSettings settings)
    : state_(std::make_shared<State>(std::move(reactor), std::move(pool), std::move(settings))) {}

PodDisk::~PodDisk() { state_->stop.request_stop(); }

std::shared_ptr<const PodDiskReading> PodDisk::known(std::string_view uid) const {
  const auto entry = state_->pods.find(uid);
  return entry == state_->pods.end() ? nullptr : entry->second.reading;
}

core::Duration PodDisk::interval() const { return state_->settings.interval; }

std::vector<PodName> PodDisk::due(std::span<const PodName> pods, core::Instant now) const {
  const auto is_due = [&](const PodName& pod) {
    const auto entry = state_->pods.find(pod.uid);
    if (entry == state_->pods.end()) return true;
    const auto& [reading, walk, dirty] = entry->second;
    if (dirty) return true;
    return !walk && (!reading || now - reading->time >= state_->settings.interval);
  };
  std::vector<PodName> result;
  for (const auto& pod : pods)
    if (is_due(pod)) result.push_back(pod);
  return result;
}

asio::awaitable<void> PodDisk::measure(std::vector<PodName> pods) {
  const auto state = state_;  // this may go while the walks are waited for
  const auto wait_for = [](std::shared_ptr<Walk> walk) -> asio::awaitable<void> {
    while (!walk->ended) co_await walk->done.async_wait(asio::as_tuple(asio::use_awaitable));
  };
  std::vector<std::pair<std::shared_ptr<Walk>, bool>> walks;  // and whether it began too early
  for (const auto& pod : pods) {
    const bool outdated = state->pods[pod.uid].walk && state->pods[pod.uid].dirty;
    walks.emplace_back(state->start(pod), outdated);
  }
  for (std::size_t i = 0; i < pods.size(); ++i) {
    co_await wait_for(walks[i].first);
    if (walks[i].second && !state->stop.stop_requested()) co_await wait_for(state->start(pods[i]));
  }
}

void PodDisk::mark_dirty(std::string_view uid) {
  if (const auto entry = state_->pods.find(uid); entry != state_->pods.end()) entry->second.dirty = true;
}

void PodDisk::keep_only(std::span<const PodName> pods) {
  std::set<std::string_view> kept;
  for (const auto& pod : pods) kept.insert(pod.uid);
  std::erase_if(state_->pods, [&](const auto& entry) { return !kept.contains(entry.first); });
}

}  // namespace evictd::node
