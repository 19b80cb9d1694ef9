#include "node/pod_disk.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "node/disk_usage.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace evictd::node {
namespace asio = boost::asio;
namespace {

using os::now;

using ReadingPtr = std::shared_ptr<const PodDiskReading>;

/// What a worker does of a walk. The worker's while a slice is under way, else the reactor's.
struct Walking {
  /// One slice; whether it was the last.
  bool go_on(core::Duration slice) {
    const auto begin = now();
    if (begun == core::Instant{}) begun = begin;
    WalkBudget budget(entries_left, slice, stop.get_token());
    const bool done = files.go_on(budget);
    entries_left = budget.entries_left();
    spent += now() - begin;
    return done || entries_left == 0 || stop.stop_requested();
  }

  PodWalk files;
  std::int64_t entries_left;
  core::Instant begun{};
  core::Duration spent{};
  bool out_of_patience = false;
  std::stop_source stop{};  // for any thread

  // Of the last slice.
  bool ended = false;
  ReadingPtr reading{};  // where the walk ended, or patience did
};

/// One walk, and those who wait for it.
struct Walk {
  Walk(const asio::any_io_executor& reactor, const PodName& pod, const PodDiskSettings& settings)
      : uid(pod.uid),
        has_layers(!pod.containers.empty()),
        done(reactor, asio::steady_timer::time_point::max()),
        walking(std::make_shared<Walking>(
            Walking{.files = PodWalk{settings.roots, pod}, .entries_left = settings.max_entries})) {}

  void tell() {
    told = true;
    done.cancel();
  }

  std::string uid;
  bool has_layers;
  bool told = false;        // it ended, or patience did
  bool hangs = false;       // and was given up
  asio::steady_timer done;  // never expires: cancelled when it is told
  std::shared_ptr<Walking> walking;
};

using WalkPtr = std::shared_ptr<Walk>;

struct Entry {
  ReadingPtr reading{};
  WalkPtr walk{};          // while one is under way
  bool dirty = false;      // marked since the last walk began
  bool refused = false;    // the last time it was to be walked
  core::Instant rested{};  // not before, it is due again
};

}  // namespace

struct PodDisk::State : std::enable_shared_from_this<State> {
  State(asio::any_io_executor reactor_executor, MakeWorker make, PodDiskSettings given)
      : reactor(std::move(reactor_executor)),
        make_worker(std::move(make)),
        settings(std::move(given)),
        watchdog(reactor) {}

  /// Begins a walk of the pod, or joins the one that is under way. Null where it is refused.
  WalkPtr start(const PodName& pod) {
    auto& entry = pods[pod.uid];
    if (entry.walk) return entry.walk;
    entry.refused = !has_worker();
    if (entry.refused) return nullptr;
    entry.dirty = false;
    entry.walk = std::make_shared<Walk>(reactor, pod, settings);
    turns.push_back(entry.walk);
    go_on();
    return entry.walk;
  }

  bool has_worker() {
    if (!worker && given_up.size() < settings.most_given_up) worker = make_worker();
    return worker != nullptr;
  }

  /// The slice of the walk that waits longest, unless one is under way.
  void go_on() {
    if (current || turns.empty() || stopping) return;
    current = std::move(turns.front());
    turns.pop_front();
    watchdog.expires_after(settings.slice + settings.hang);
    watchdog.async_wait([weak = weak_from_this(), walk = current](boost::system::error_code cancelled) {
      const auto self = weak.lock();
      if (!cancelled && self && self->current == walk) self->give_up();
    });
    const auto work = [walking = current->walking, slice = settings.slice, patience = settings.patience] {
      walking->ended = walking->go_on(slice);
      const bool impatient = !walking->ended && !walking->out_of_patience && now() - walking->begun >= patience;
      walking->out_of_patience = walking->out_of_patience || impatient;
      if (walking->ended || impatient)
        walking->reading = std::make_shared<const PodDiskReading>(walking->files.reading());
    };
    worker->run(work, [weak = weak_from_this(), walk = current] {
      if (const auto self = weak.lock()) self->slice_ended(walk);
    });
  }

  void slice_ended(const WalkPtr& walk) {
    if (walk->hangs) return came_back(walk);
    watchdog.cancel();
    current.reset();
    if (auto reading = std::exchange(walk->walking->reading, nullptr)) heard(*walk, std::move(reading));
    if (!walk->walking->ended) turns.push_back(walk);
    go_on();
  }

  void heard(Walk& walk, ReadingPtr reading) {
    const auto& walking = *walk.walking;
    // A pod that was forgotten meanwhile, even if another of its uid came, has nothing to do with this walk.
    if (const auto entry = pods.find(walk.uid); entry != pods.end() && entry->second.walk.get() == &walk) {
      // All that there was a while ago says more than a part of what there is.
      const bool knew_all = entry->second.reading && entry->second.reading->complete;
      if (walking.ended || !knew_all) entry->second.reading = std::move(reading);
      if (walking.ended) {
        entry->second.rested = walking.spent < std::chrono::seconds(1) ? core::Instant{} : now() + 4 * walking.spent;
        entry->second.walk.reset();
      }
    }
    walk.tell();
  }

  /// The worker is held up: the walk stays with it, and those who wait for the pod go on without it.
  void give_up() {
    auto walk = std::move(current);
    walk->hangs = true;
    walk->walking->stop.request_stop();
    walk->tell();
    given_up.emplace(std::move(walk), std::move(worker));
    if (has_worker()) return go_on();
    os::log_warning("{} walks through pods' directories hang; pods are not measured on disk until one of them returns",
                    given_up.size());
    for (const auto& waiting : std::exchange(turns, {})) {
      if (const auto entry = pods.find(waiting->uid); entry != pods.end() && entry->second.walk == waiting) {
        entry->second.walk.reset();
        entry->second.refused = true;
      }
      waiting->tell();
    }
  }

  /// What it saw is older than it took, and there is less to it.
  void came_back(const WalkPtr& walk) {
    if (const auto entry = pods.find(walk->uid); entry != pods.end() && entry->second.walk == walk) {
      entry->second.walk.reset();
      entry->second.dirty = true;
    }
    given_up.erase(walk);
    if (given_up.size() + 1 == settings.most_given_up) os::log_info("pods are measured on disk again");
  }

  void stop() {
    stopping = true;
    watchdog.cancel();
    for (const auto& [uid, entry] : pods) {
      if (!entry.walk) continue;
      entry.walk->walking->stop.request_stop();
      entry.walk->tell();
    }
    if (current) current->tell();  // of a pod that was forgotten
    for (const auto& walk : turns) walk->tell();
    worker.reset();
    given_up.clear();
  }

  asio::any_io_executor reactor;
  MakeWorker make_worker;
  PodDiskSettings settings;
  bool stopping = false;
  std::map<std::string, Entry, std::less<>> pods;
  std::deque<WalkPtr> turns;    // that wait for the worker
  WalkPtr current;              // whose slice is under way
  asio::steady_timer watchdog;  // of the slice
  std::unique_ptr<async::Worker> worker;
  std::map<WalkPtr, std::unique_ptr<async::Worker>> given_up;
};

PodDisk::PodDisk(asio::any_io_executor reactor, MakeWorker make_worker, PodDiskSettings settings)
    : state_(std::make_shared<State>(std::move(reactor), std::move(make_worker), std::move(settings))) {}

PodDisk::~PodDisk() { state_->stop(); }

std::shared_ptr<const PodDiskReading> PodDisk::known(std::string_view uid) const {
  const auto entry = state_->pods.find(uid);
  return entry == state_->pods.end() ? nullptr : entry->second.reading;
}

bool PodDisk::is_out_of_reach(std::string_view uid) const {
  const auto found = state_->pods.find(uid);
  if (found == state_->pods.end()) return false;
  const auto& entry = found->second;
  return (entry.walk && entry.walk->hangs) || (entry.refused && !entry.reading);
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
  const auto wait_for = [](WalkPtr walk) -> asio::awaitable<void> {
    while (walk && !walk->told) co_await walk->done.async_wait(asio::as_tuple(asio::use_awaitable));
  };
  std::vector<std::pair<WalkPtr, bool>> walks;  // and whether it began too early
  for (const auto& pod : pods) {
    const auto& entry = state->pods[pod.uid];
    const bool lacks_layers = entry.walk && !pod.containers.empty() && !entry.walk->has_layers;
    const bool outdated = entry.walk && (entry.dirty || lacks_layers);
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
    if (goes && entry.second.walk) entry.second.walk->walking->stop.request_stop();
    return goes;
  });
}

}  // namespace evictd::node
