#include "node/pod_disk.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "async/sleep.hpp"
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
  void go_on(core::Duration slice) {
    const auto begin = now();
    if (begun == core::Instant{}) begun = begin;
    WalkBudget budget(entries_left, slice, stop.get_token());
    const bool done = files.go_on(budget);
    entries_left = budget.entries_left();
    ended = done || entries_left == 0 || stop.stop_requested();
    reading = std::make_shared<const PodDiskReading>(files.reading());
    spent += now() - begin;
  }

  PodWalk files;
  std::int64_t entries_left;
  core::Instant begun{};  // for the first time
  core::Duration spent{};
  std::stop_source stop{};  // for any thread

  // Of the last slice.
  bool ended = false;
  ReadingPtr reading{};
};

/// One walk, and what came of it.
struct Walk {
  Walk(PodName name, const PodDiskSettings& settings)
      : pod(std::move(name)),
        walking(std::make_shared<Walking>(
            Walking{.files = PodWalk{settings.roots, pod}, .entries_left = settings.max_entries})) {}

  /// Its next slice is the first again. What it kept until now.
  PodWalk begin_anew(const PodDiskSettings& settings) {
    is_begun = false;
    walking->entries_left = settings.max_entries;
    return std::exchange(walking->files, PodWalk{settings.roots, pod});
  }

  PodName pod;
  bool is_begun = false;  // and keeps what it has seen
  bool told = false;      // it ended, or patience did
  bool hangs = false;     // and was given up
  ReadingPtr seen{};      // so far; null before the first slice is over
  std::int64_t left_then = 0;
  std::shared_ptr<Walking> walking;
};

using WalkPtr = std::shared_ptr<Walk>;

constexpr auto walk_of = [](const WalkPtr& walk) -> const Walk& { return *walk; };

struct Entry {
  ReadingPtr reading{};
  WalkPtr walk{};                        // while one is under way
  std::weak_ptr<const PodName> asked{};  // by somebody who waits for the pod's layers, too
  bool dirty = false;                    // marked since the last walk began
  bool refused = false;                  // the last time it was to be walked
  core::Instant rested{};                // not before, it is due again
};

}  // namespace

struct PodDisk::State : std::enable_shared_from_this<State> {
  State(asio::any_io_executor reactor_executor, MakeWorker make, PodDiskSettings given)
      : reactor(std::move(reactor_executor)),
        make_worker(std::move(make)),
        settings(std::move(given)),
        slice_over(reactor, asio::steady_timer::time_point::max()),
        watchdog(reactor) {}

  /// Begins a walk of the pod, or joins the one that is under way. Null where it is refused.
  WalkPtr start(const PodName& pod) {
    auto& entry = pods[pod.uid];
    if (entry.walk) {
      if (!entry.walk->is_begun) look_at_more(entry, pod);
      return entry.walk;
    }
    entry.refused = !has_worker();
    if (entry.refused) return nullptr;
    entry.dirty = false;
    // Whoever waits for layers would lose those that were walked for him already.
    const auto asked = entry.asked.lock();
    entry.walk = std::make_shared<Walk>(asked ? *asked : pod, settings);
    turns.push_back(entry.walk);
    go_on();
    return entry.walk;
  }

  /// A walk that is yet to begin will see all that is there by then, and layers if they are asked for.
  void look_at_more(Entry& entry, const PodName& pod) {
    entry.dirty = false;
    if (pod.containers.empty()) return;
    entry.walk->pod = pod;
    (void)entry.walk->begin_anew(settings);
  }

  bool has_worker() {
    if (!worker && given_up.size() < settings.most_given_up) worker = make_worker();
    return worker != nullptr;
  }

  /// The slice of the walk that waits longest, unless one is under way.
  void go_on() {
    if (current || turns.empty() || stopping) return;
    const bool is_room = std::ranges::count_if(turns, &Walk::is_begun, walk_of) < settings.most_begun;
    const auto next =
        std::ranges::find_if(turns, [&](const Walk& walk) { return walk.is_begun || !walk.seen || is_room; }, walk_of);
    current = *next;
    turns.erase(next);
    current->is_begun = true;
    watchdog.expires_after(settings.slice + settings.hang);
    watchdog.async_wait([weak = weak_from_this(), walk = current](boost::system::error_code cancelled) {
      const auto self = weak.lock();
      if (!cancelled && self && self->current == walk) self->give_up();
    });
    auto work = [walking = current->walking, slice = settings.slice,
                 gone = std::exchange(discarded, std::nullopt)]() mutable {
      gone.reset();  // which takes some milliseconds of a large one
      walking->go_on(slice);
    };
    worker->run(std::move(work), [weak = weak_from_this(), walk = current] {
      if (const auto self = weak.lock()) self->slice_ended(walk);
    });
  }

  void slice_ended(const WalkPtr& walk) {
    if (walk->hangs) return came_back(walk);
    watchdog.cancel();
    current.reset();
    heard(*walk);
    if (!walk->walking->ended) turns.push_back(walk);
    bound_begun();
    slice_over.cancel();
    go_on();
  }

  void heard(Walk& walk) {
    auto& walking = *walk.walking;
    auto reading = std::exchange(walking.reading, nullptr);
    // Where it began anew, more was seen before.
    if (!walk.seen || walking.entries_left <= walk.left_then) {
      walk.seen = reading;
      walk.left_then = walking.entries_left;
    }
    if (!walking.ended) {
      const bool impatient = !walk.told && now() - walking.begun >= settings.patience;
      if (impatient) count_in_part(walk);
      walk.told = walk.told || impatient;
      return;
    }
    if (auto* entry = entry_of(walk)) {
      entry->reading = std::move(reading);
      entry->rested = walking.spent < std::chrono::seconds(1) ? core::Instant{} : now() + 4 * walking.spent;
      entry->walk.reset();
    }
    walk.told = true;
  }

  /// Null where the pod was forgotten meanwhile: even if another of its uid came, that has nothing to do with this
  /// walk.
  Entry* entry_of(const Walk& walk) {
    const auto entry = pods.find(walk.pod.uid);
    return entry != pods.end() && entry->second.walk.get() == &walk ? &entry->second : nullptr;
  }

  /// What is known of the pod for somebody who does not wait for the walk's end. A pod of which nothing is known yet
  /// has a reading, too, that says so: it would be evicted first for having none.
  void count_in_part(const Walk& walk) {
    auto* entry = entry_of(walk);
    // All that there was a while ago says more than a part of what there is.
    if (entry == nullptr || walk.hangs || (entry->reading && entry->reading->complete)) return;
    if (walk.seen)
      entry->reading = walk.seen;
    else if (!entry->reading)
      entry->reading = std::make_shared<const PodDiskReading>(PodDiskReading{.complete = false, .time = now()});
  }

  /// Of those that keep too much together the largest is to begin anew when there is room: a tree that is too large for
  /// its turn must not keep those waiting that take a few. The one that began first goes on, so that each ends in time.
  void bound_begun() {
    std::vector<WalkPtr> begun;
    std::ranges::copy_if(turns, std::back_inserter(begun), &Walk::is_begun, walk_of);
    if (std::ssize(begun) <= settings.most_begun) return;
    const auto first = std::ranges::min_element(begun, {}, [](const WalkPtr& walk) { return walk->walking->begun; });
    begun.erase(first);
    const auto largest =
        std::ranges::min_element(begun, {}, [](const WalkPtr& walk) { return walk->walking->entries_left; });
    discarded.emplace((*largest)->begin_anew(settings));
  }

  /// The worker is held up: the walk stays with it, and those who wait for the pod go on without it.
  void give_up() {
    auto walk = std::move(current);
    walk->hangs = true;
    walk->walking->stop.request_stop();
    walk->told = true;
    given_up.emplace(std::move(walk), std::move(worker));
    slice_over.cancel();
    if (has_worker()) return go_on();
    os::log_warning("{} walks through pods' directories hang; pods are not measured on disk until one of them returns",
                    given_up.size());
    for (const auto& waiting : std::exchange(turns, {})) {
      if (auto* entry = entry_of(*waiting)) {
        entry->walk.reset();
        entry->refused = true;
      }
      waiting->told = true;
    }
  }

  /// What it saw is older than it took, and there is less to it.
  void came_back(const WalkPtr& walk) {
    if (auto* entry = entry_of(*walk)) {
      entry->walk.reset();
      entry->dirty = true;
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
      entry.walk->told = true;
    }
    if (current) current->told = true;  // of a pod that was forgotten
    for (const auto& walk : turns) walk->told = true;
    slice_over.cancel();
    worker.reset();
    given_up.clear();
  }

  asio::any_io_executor reactor;
  MakeWorker make_worker;
  PodDiskSettings settings;
  bool stopping = false;
  std::map<std::string, Entry, std::less<>> pods;
  std::deque<WalkPtr> turns;         // that wait for the worker
  WalkPtr current;                   // whose slice is under way
  std::optional<PodWalk> discarded;  // for the worker to free
  asio::steady_timer slice_over;     // never expires: cancelled when a slice is over
  asio::steady_timer watchdog;       // of the slice
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

asio::awaitable<void> PodDisk::measure(std::vector<PodName> given) {
  const auto state = state_;  // this may go while the walks are waited for
  const auto pods = std::make_shared<const std::vector<PodName>>(std::move(given));
  const auto end = now() + state->settings.patience;
  bool is_over = false;
  const auto wait_for = [&](WalkPtr walk) -> asio::awaitable<void> {
    while (walk && !walk->told && !is_over) {
      co_await async::wait(state->slice_over);
      is_over = now() >= end;  // nothing more is known of any walk before its slice is over
    }
  };
  std::vector<std::pair<WalkPtr, bool>> walks;  // and whether it began too early
  for (const auto& pod : *pods) {
    auto& entry = state->pods[pod.uid];
    if (!pod.containers.empty()) entry.asked = std::shared_ptr<const PodName>(pods, &pod);
    const bool is_begun = entry.walk && entry.walk->is_begun;
    const bool lacks_layers = is_begun && !pod.containers.empty() && entry.walk->pod.containers.empty();
    const bool outdated = is_begun && (entry.dirty || lacks_layers);
    walks.emplace_back(state->start(pod), outdated);
  }
  for (std::size_t i = 0; i < pods->size(); ++i) {
    co_await wait_for(walks[i].first);
    if (!walks[i].second || is_over || state->stopping) continue;
    walks[i].first = state->start((*pods)[i]);
    co_await wait_for(walks[i].first);
  }
  for (const auto& [walk, outdated] : walks)
    if (walk) state->count_in_part(*walk);
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
