#include "wake/directory_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

constexpr std::uint32_t changes =
    IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_MOVE_SELF;

}  // namespace

DirectoryWatch::DirectoryWatch(const asio::any_io_executor& reactor, Wakes& wakes, DirectoryWatchOptions options,
                               Directories directories, std::function<void()> on_change)
    : options_{std::move(options)},
      notifier_{wakes, options_.name},
      directories_{std::move(directories)},
      on_change_{std::move(on_change)},
      inotify_{reactor,
               options_.interval,
               {.on_event = [this](const Inotify::Event& event) { on_event(event); },
                .on_batch_end = [this] { on_batch_end(); }}} {
  const auto opened = inotify_.open();
  open_ = opened.has_value();
  if (!opened) notifier_.failed(opened.error());
}

void DirectoryWatch::arm(const Arming& arming) {
  if (!open_) return;
  const auto wanted = directories_(arming);
  for (auto entry = watches_.begin(); entry != watches_.end();) {
    if (std::ranges::find(wanted, entry->first) != wanted.end()) {
      ++entry;
      continue;
    }
    inotify_.remove(entry->second);
    entry = watches_.erase(entry);
  }
  std::optional<Error> first_error;
  bool appeared = false;
  for (const auto& directory : wanted) {
    if (watches_.contains(directory)) continue;
    const auto watch = inotify_.add(directory, changes);
    if (watch) {
      watches_.emplace(directory, *watch);
      appeared = missing_.erase(directory) > 0 || appeared;
      continue;
    }
    missing_.insert(directory);
    if (watch.error().code != ENOENT && !first_error) first_error = watch.error();
  }
  if (first_error)
    notifier_.failed(*first_error);
  else
    notifier_.works();
  if (appeared) tell();
}

void DirectoryWatch::tell() {
  if (on_change_) on_change_();
  notifier_.wake(options_.detail);
}

/// A directory that went, or has another name by now, is looked for at the next arm(). Where the queue was full
/// anything may have changed.
void DirectoryWatch::on_event(const Inotify::Event& event) {
  const bool overflow = (event.mask & IN_Q_OVERFLOW) != 0;
  const bool moved = (event.mask & IN_MOVE_SELF) != 0;
  changed_ = changed_ || overflow || moved || options_.names.empty() || options_.names.contains(event.name);
  if (moved) inotify_.remove(event.watch);
  if (!moved && (event.mask & IN_IGNORED) == 0) return;
  for (auto entry = watches_.begin(); entry != watches_.end();) {
    if (entry->second != event.watch) {
      ++entry;
      continue;
    }
    missing_.insert(entry->first);
    entry = watches_.erase(entry);
  }
}

void DirectoryWatch::on_batch_end() {
  if (std::exchange(changed_, false)) tell();
}

std::vector<SourceStatus> DirectoryWatch::status() const {
  auto status = notifier_.status(options_.name, watches_.empty() ? "waiting: no directory yet" : "armed");
  for (const auto& [directory, watch] : watches_)
    status.detail += (status.detail.empty() ? "" : ", ") + directory.native();
  return {status};
}

}  // namespace evictd::wake
