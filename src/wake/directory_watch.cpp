#include "wake/directory_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "async/side_thread.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "os/now.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

std::uint32_t changes_of(const DirectoryWatchOptions& options) {
  constexpr std::uint32_t whole = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_MOVE_SELF;
  return options.settle > core::Duration::zero() ? whole : whole | IN_MODIFY;
}

/// A file that never comes to rest is read all the same.
constexpr int most_settles = 8;

}  // namespace

DirectoryWatch::DirectoryWatch(const asio::any_io_executor& reactor, Wakes& wakes, DirectoryWatchOptions options,
                               Directories directories, std::function<void()> on_change)
    : options_{std::move(options)},
      notifier_{wakes, options_.source},
      directories_{std::move(directories)},
      on_change_{std::move(on_change)},
      inotify_{reactor, options_.settle > core::Duration::zero() ? options_.settle / 3 : options_.interval, *this},
      timer_{reactor} {
  if (!options_.worker) options_.worker = std::make_shared<async::SideThread>(reactor, "watch");
  const auto opened = inotify_.open();
  open_ = opened.has_value();
  if (!opened) notifier_.failed(opened.error());
}

void DirectoryWatch::arm(const Arming& arming) {
  if (!open_) return;
  wanted_ = directories_(arming);
  for (auto entry = watches_.begin(); entry != watches_.end();) {
    if (is_wanted(entry->first)) {
      ++entry;
      continue;
    }
    inotify_.remove(entry->second);
    entry = watches_.erase(entry);
  }
  look();
}

bool DirectoryWatch::is_wanted(const std::filesystem::path& directory) const {
  return std::ranges::find(wanted_, directory) != wanted_.end();
}

/// For the directories that are not watched yet.
void DirectoryWatch::look() {
  constexpr core::Duration patience = std::chrono::seconds(3);  // as of a file system (node::DiskReader)
  const auto now = core::Instant::clock::now();
  if (looking_) {
    if (now - *looking_ >= patience)
      notifier_.failed({"no answer from the disk for " + core::to_string(patience) + "; changes may be missed"});
    return;
  }
  const auto found = std::make_shared<Found>();
  for (const auto& directory : wanted_)
    if (!watches_.contains(directory)) found->emplace_back(directory, -1);
  if (found->empty()) return notifier_.works();
  const auto queue = inotify_.duplicate();
  if (!queue) return notifier_.failed({"no more descriptors; raise the limit of open files"});
  looking_ = now;
  options_.worker->run(
      [queue, found, changes = changes_of(options_)] {
        for (auto& [directory, watch] : *found) watch = os::Inotify::add_to(*queue, directory, changes);
      },
      [this, found, alive = std::weak_ptr(alive_)] {
        if (!alive.expired()) looked(*found);
      });
}

void DirectoryWatch::looked(const Found& found) {
  looking_.reset();
  std::optional<Error> first_error;
  bool news = false;  // what was read of it before may be of another time
  bool appeared = false;
  for (const auto& [directory, watch] : found) {
    if (!watch) {
      news = missing_.insert(directory).second || news;
      if (watch.error().code != ENOENT && !first_error) first_error = watch.error();
    } else if (!is_wanted(directory)) {
      inotify_.remove(*watch);
    } else if (lost_meanwhile_.contains(*watch)) {
      missing_.insert(directory);
    } else {
      watches_.emplace(directory, *watch);
      news = true;
      appeared = missing_.erase(directory) > 0 || appeared;
    }
  }
  lost_meanwhile_.clear();
  if (first_error)
    notifier_.failed(*first_error);
  else
    notifier_.works();
  if (appeared)
    change();
  else if (news && on_change_)
    on_change_();
}

void DirectoryWatch::change() {
  if (options_.settle <= core::Duration::zero()) return tell();
  const auto now = os::now();
  if (!changed_since_) changed_since_ = now;
  timer_.expires_at(std::min(now + options_.settle, *changed_since_ + most_settles * options_.settle));
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](boost::system::error_code cancelled) {
    if (cancelled || alive.expired()) return;
    changed_since_.reset();
    tell();
  });
}

void DirectoryWatch::tell() {
  if (on_change_) on_change_();
  notifier_.wake(options_.detail);
}

/// A directory that went, or has another name by now, is looked for at the next arm(). Where the queue was full
/// anything may have changed. The end of a watch that is not wanted any more is no change.
void DirectoryWatch::on_event(const os::Inotify::Event& event) {
  const bool overflow = (event.mask & IN_Q_OVERFLOW) != 0;
  const bool moved = (event.mask & IN_MOVE_SELF) != 0;
  const bool ended = moved || (event.mask & IN_IGNORED) != 0;
  const auto known = std::ranges::find(watches_, event.watch, &decltype(watches_)::value_type::second);
  const bool matters = !options_.matters || options_.matters(event.name);
  changed_ = changed_ || overflow || moved || (matters && (!ended || known != watches_.end()));
  if (moved) inotify_.remove(event.watch);
  if (!ended) return;
  if (looking_) lost_meanwhile_.insert(event.watch);
  if (known == watches_.end()) return;
  missing_.insert(known->first);
  watches_.erase(known);
}

void DirectoryWatch::on_batch_end() {
  if (std::exchange(changed_, false)) change();
}

std::vector<SourceStatus> DirectoryWatch::status() const {
  auto status = notifier_.status(std::string(core::name(options_.source)),
                                 watches_.empty() ? "waiting: no directory yet" : "armed");
  for (const auto& [directory, watch] : watches_)
    status.detail += (status.detail.empty() ? "" : ", ") + directory.native();
  return {status};
}

}  // namespace evictd::wake
