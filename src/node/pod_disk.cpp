#include "node/pod_disk.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "node/disk_usage.hpp"

namespace evictd::node {
namespace asio = boost::asio;
namespace {

core::Instant now() { return core::Instant::clock::now(); }

/// One walk, and those who wait for it.
struct Walk {
  Walk(const asio::any_io_executor& reactor, PodWalk walk, std::int64_t most)
      : done(reactor, asio::steady_timer::time_point::max()), files(std::move(walk)), entries_left(most) {}

  // For the reactor.
  bool told = false;        // it ended, or patience did
  asio::steady_timer done;  // never expires: cancelled when it is told

  // For the pool, one slice after the other.
  PodWalk files;
  std::int64_t entries_left;
  core::Instant begun{};
  core::Duration spent{};
  bool out_of_patience = false;

  std::stop_source stop;
};

using ReadingPtr = std::shared_ptr<const PodDiskReading>;

struct Entry {
  ReadingPtr reading{};
  std::shared_ptr<Walk> walk{};  // while one is under way
  bool dirty = false;            // marked since the last walk began
  core::Instant rested{};        // not before, it is due again
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
    entry.walk = std::make_shared<Walk>(reactor, PodWalk{settings.roots, pod}, settings.max_entries);
    go_on(pod.uid, entry.walk);
    return entry.walk;
  }

  /// Behind those who wait for their turn already. What is shared goes from the pool to the reactor with each reading
  /// or on to the next slice: the last reference to a timer must be let go of by the reactor.
  void go_on(std::string uid, std::shared_ptr<Walk> walk) {
    asio::post(pool, [self = shared_from_this(), uid = std::move(uid), walk = std::move(walk)]() mutable {
      const bool ended = self->walk_on(*walk);
      const bool impatient = !ended && !walk->out_of_patience && now() - walk->begun >= self->settings.patience;
      if (impatient) walk->out_of_patience = true;
      auto reading = ended || impatient ? std::make_shared<const PodDiskReading>(walk->files.reading()) : nullptr;
      const auto target = self->reactor;
      if (!ended) self->go_on(uid, walk);
      asio::post(target, [self = std::move(self), uid = std::move(uid), walk = std::move(walk),
                          reading = std::move(reading), ended]() mutable {
        if (reading != nullptr) self->heard(uid, *walk, std::move(reading), ended);
      });
    });
  }

  /// One slice; whether it was the last.
  bool walk_on(Walk& walk) const {
    const auto begin = now();
    if (walk.begun == core::Instant{}) walk.begun = begin;
    WalkBudget budget(walk.entries_left, settings.slice, walk.stop.get_token());
    const bool done = walk.files.go_on(budget);
    walk.entries_left = budget.entries_left();
    walk.spent += now() - begin;
    return done || walk.entries_left == 0 || walk.stop.stop_requested();
  }

  void heard(const std::string& uid, Walk& walk, ReadingPtr reading, bool ended) {
    // A pod that was forgotten meanwhile, even if another of its uid came, has nothing to do with this walk.
    if (const auto entry = pods.find(uid); entry != pods.end() && entry->second.walk.get() == &walk) {
      // All that there was a while ago says more than a part of what there is.
      const bool knew_all = entry->second.reading && entry->second.reading->complete;
      if (ended || !knew_all) entry->second.reading = std::move(reading);
      if (ended) {
        entry->second.rested = walk.spent < std::chrono::seconds(1) ? core::Instant{} : now() + 4 * walk.spent;
        entry->second.walk.reset();
      }
    }
    walk.told = true;
    walk.done.cancel();
  }

  asio::any_io_executor reactor;
  asio::any_io_executor pool;
  PodDiskSettings settings;
  bool stopping = false;
  std::map<std::string, Entry, std::less<>> pods;
};

PodDisk::PodDisk(asio::any_io_executor reactor, asio::any_io_executor pool, PodDiskSettings settings)
    : state_(std::make_shared<State>(std::move(reactor), std::move(pool), std::move(settings))) {}

PodDisk::~PodDisk() {
  state_->stopping = true;
  for (const auto& [uid, entry] : state_->pods)
    if (entry.walk) entry.walk->stop.request_stop();
}

std::shared_ptr<const PodDiskReading> PodDisk::known(std::string_view uid) const {
  const auto entry = state_->pods.find(uid);
  return entry == state_->pods.end() ? nullptr : entry->second.reading;
}

core::Duration PodDisk::interval() const { return state_->settings.interval; }

std::vector<PodName> PodDisk::due(std::span<const PodName> pods, core::Instant now) const {
  const auto is_due = [&](const PodName& pod) {
    const auto found = state_->pods.find(pod.uid);
    if (found == state_->pods.end()) return true;
    const auto& entry = found->second;
    const bool going_on = entry.walk && entry.walk->told;
    if (going_on || now < entry.rested) return false;
    if (entry.dirty) return true;
    return !entry.walk && (!entry.reading || now - entry.reading->time >= state_->settings.interval);
  };
  std::vector<PodName> result;
  for (const auto& pod : pods)
    if (is_due(pod)) result.push_back(pod);
  return result;
}

asio::awaitable<void> PodDisk::measure(std::vector<PodName> pods) {
  const auto state = state_;  // this may go while the walks are waited for
  const auto wait_for = [](std::shared_ptr<Walk> walk) -> asio::awaitable<void> {
    while (!walk->told) co_await walk->done.async_wait(asio::as_tuple(asio::use_awaitable));
  };
  std::vector<std::pair<std::shared_ptr<Walk>, bool>> walks;  // and whether it began too early
  for (const auto& pod : pods) {
    const bool outdated = state->pods[pod.uid].walk && state->pods[pod.uid].dirty;
    walks.emplace_back(state->start(pod), outdated);
  }
  for (std::size_t i = 0; i < pods.size(); ++i) {
    co_await wait_for(walks[i].first);
    if (walks[i].second && !state->stopping) co_await wait_for(state->start(pods[i]));
  }
}

void PodDisk::mark_dirty(std::string_view uid) {
  if (const auto entry = state_->pods.find(uid); entry != state_->pods.end()) entry->second.dirty = true;
}

void PodDisk::keep_only(std::span<const PodName> pods) {
  std::set<std::string_view> kept;
  for (const auto& pod : pods) kept.insert(pod.uid);
  std::erase_if(state_->pods, [&](const auto& entry) {
    const bool goes = !kept.contains(entry.first);
    if (goes && entry.second.walk) entry.second.walk->stop.request_stop();
    return goes;
  });
}

}  // namespace evictd::node
