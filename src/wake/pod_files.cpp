#include "wake/pod_files.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "wake/fanotify_trees.hpp"
#include "wake/inotify_trees.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;

namespace evictd::wake {

PodFilesWatch::PodFilesWatch(asio::any_io_executor reactor, Wakes& wakes, const PodFilesOptions& options,
                             OnChange on_change)
    : notifier_{wakes, "files"}, on_change_{std::move(on_change)}, interval_{options.interval}, timer_{reactor} {
  if (auto trees = open(std::move(reactor), options))
    trees_ = *std::move(trees);
  else
    notifier_.failed(trees.error());
}

Result<std::unique_ptr<TreeWatch>> PodFilesWatch::open(asio::any_io_executor reactor, const PodFilesOptions& options) {
  const auto on_change = [this](const std::string& uid) { changed(uid); };
  if (options.by != config::FilesNotifier::Inotify) {
    auto trees = std::make_unique<FanotifyTrees>(reactor, on_change);
    const auto opened = trees->open(options.roots);
    if (opened) return trees;
    if (options.by == config::FilesNotifier::Fanotify) return std::unexpected(opened.error());
  }
  auto trees = std::make_unique<InotifyTrees>(std::move(reactor), on_change);
  if (const auto opened = trees->open(); !opened) return std::unexpected(opened.error());
  return trees;
}

void PodFilesWatch::arm(const Arming& arming) {
  if (!trees_ || arming.files == files_) return;
  files_ = arming.files;
  if (const auto watched = trees_->watch(*files_))
    notifier_.works();
  else
    notifier_.failed(watched.error());
}

void PodFilesWatch::changed(const std::string& uid) {
  changed_.insert(uid);
  if (!resting_) tell();
}

/// The first change is told at once, those that follow it within the interval together at its end.
void PodFilesWatch::tell() {
  for (const auto& uid : changed_) on_change_(uid);
  changed_.clear();
  notifier_.wake("pods write to their volumes or logs");
  resting_ = true;
  timer_.expires_after(interval_);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;  // cancelled: `this` may be gone
    resting_ = false;
    if (!changed_.empty()) tell();
  });
}

std::vector<SourceStatus> PodFilesWatch::status() const {
  auto status = notifier_.status("files", trees_ ? "armed" : "off: it could not be opened");
  if (trees_) status.detail = fmt::format("{} for {} pods", trees_->describe(), files_ ? files_->size() : 0);
  return {status};
}

}  // namespace evictd::wake
