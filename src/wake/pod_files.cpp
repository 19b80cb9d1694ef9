#include "wake/pod_files.hpp"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "async/detached_thread.hpp"
#include "core/error.hpp"
#include "wake/fanotify_trees.hpp"
#include "wake/inotify_trees.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

Result<std::unique_ptr<TreeWatch>> open_trees(const asio::any_io_executor& reactor, const PodFilesOptions& options,
                                              const TreeWatch::OnChange& on_change) {
  if (options.fanotify) {
    auto trees = std::make_unique<FanotifyTrees>(reactor, on_change);
    if (trees->open(options.roots)) return trees;
  }
  auto trees = std::make_unique<InotifyTrees>(reactor, on_change);
  if (const auto opened = trees->open(); !opened) return std::unexpected(opened.error());
  return trees;
}

}  // namespace

/// What watches, on its thread, and the mailbox between the two.
struct PodFilesWatch::Side : std::enable_shared_from_this<Side> {
  /// What the watch is to know. Everything since it was taken.
  struct News {
    std::set<std::string> changed{};
    std::string description{};  ///< of what watches; empty: nothing
    std::optional<Error> error{};
    bool failed_to_open = false;
    std::uint64_t answered = 0;  ///< the last list that was taken over

    friend bool operator==(const News& a, const News& b) {
      return a.changed == b.changed && a.description == b.description && a.failed_to_open == b.failed_to_open &&
             a.answered == b.answered;
    }
  };

  Side(asio::any_io_executor main_reactor, std::weak_ptr<PodFilesWatch*> main_watch)
      : reactor{std::move(main_reactor)}, watch{std::move(main_watch)} {}

  // On its thread.

  void run(const PodFilesOptions& options) {
    auto opened =
        open_trees(context.get_executor(), options, [this](const std::string& uid) { seen.changed.insert(uid); });
    if (opened) trees = *std::move(opened);
    if (!opened) seen.error = opened.error();
    seen.failed_to_open = !opened;
    publish();
    while (trees != nullptr && context.run_one() > 0) publish();
    trees.reset();
  }

  void take_over() {
    decltype(wanted) list;
    std::uint64_t number = 0;
    {
      const std::scoped_lock lock{mutex};
      list = std::exchange(wanted, nullptr);
      number = wanted_number;
    }
    if (list == nullptr) return;
    const auto watched = trees->watch(*list);
    seen.error = watched ? std::nullopt : std::optional<Error>{watched.error()};
    seen.answered = number;
  }

  void publish() {
    if (trees) seen.description = trees->describe();
    const std::scoped_lock lock{mutex};
    auto changed = std::exchange(seen.changed, {});
    auto next = seen;
    next.changed = news.changed;
    next.changed.merge(changed);
    if (closed || next == news) return;
    news = std::move(next);
    if (std::exchange(told, true)) return;
    asio::post(reactor, [watch = watch] {
      if (const auto there = watch.lock()) (*there)->heard();
    });
  }

  // On the main reactor.

  void hand_over(std::shared_ptr<const WatchedPods> list, std::uint64_t number) {
    const std::scoped_lock lock{mutex};
    wanted_number = number;
    if (std::exchange(wanted, std::move(list)) != nullptr) return;  // which it has not taken over yet
    asio::post(context, [self = weak_from_this()] {
      if (const auto there = self.lock()) there->take_over();
    });
  }

  News take() {
    const std::scoped_lock lock{mutex};
    told = false;
    auto result = news;
    news.changed.clear();
    return result;
  }

  void close() {
    const std::scoped_lock lock{mutex};
    closed = true;
    context.stop();
  }

  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> busy{context.get_executor()};
  std::unique_ptr<TreeWatch> trees;
  News seen;

  std::mutex mutex;
  asio::any_io_executor reactor;  // there for as long as `closed` is false
  std::weak_ptr<PodFilesWatch*> watch;
  bool closed = false;
  bool told = false;  // the main reactor is going to take the news
  News news;
  std::shared_ptr<const WatchedPods> wanted;  // not taken over yet
  std::uint64_t wanted_number = 0;
};

PodFilesWatch::PodFilesWatch(asio::any_io_executor reactor, Wakes& wakes, PodFilesOptions options,
                             TreeWatch::OnChange on_change)
    : notifier_{wakes, core::WakeSource::Files},
      on_change_{std::move(on_change)},
      interval_{options.interval},
      timer_{reactor},
      self_{std::make_shared<PodFilesWatch*>(this)},
      side_{std::make_shared<Side>(std::move(reactor), self_)} {
  async::detach_thread("pod files", [side = side_, options = std::move(options)] { side->run(options); });
}

PodFilesWatch::~PodFilesWatch() { side_->close(); }

void PodFilesWatch::arm(const Arming& arming) {
  constexpr core::Duration patience = std::chrono::seconds(3);  // as of a file system (node::DiskReader)
  const auto now = core::Instant::clock::now();
  if (answered_ < asked_ && now - asked_at_ >= patience && !failed_to_open_)
    notifier_.failed({"no answer from a disk for " + core::to_string(patience) +
                      "; what pods write is seen when they are measured (node.diskUsageInterval)"});
  if (arming.watched == pods_) return;
  pods_ = arming.watched;
  if (answered_ == asked_) asked_at_ = now;
  side_->hand_over(pods_, ++asked_);
}

void PodFilesWatch::heard() {
  auto news = side_->take();
  description_ = std::move(news.description);
  failed_to_open_ = news.failed_to_open;
  const bool answered = std::exchange(answered_, news.answered) != news.answered;
  if (news.error)
    notifier_.failed(*news.error);
  else if (answered)
    notifier_.works();
  changed_.merge(news.changed);
  if (!resting_ && !changed_.empty()) tell();
}

/// The first change is told at once, those that follow it within the interval together at its end.
void PodFilesWatch::tell() {
  for (const auto& uid : changed_) on_change_(uid);
  changed_.clear();
  notifier_.wake("pods write to their volumes or logs");
  resting_ = true;
  timer_.expires_after(interval_);
  timer_.async_wait([this, self = std::weak_ptr(self_)](boost::system::error_code error) {
    if (error || self.expired()) return;
    resting_ = false;
    if (!changed_.empty()) tell();
  });
}

std::vector<SourceStatus> PodFilesWatch::status() const {
  const bool waits = description_.empty() || answered_ < asked_;
  auto status = notifier_.status("files", failed_to_open_ ? "off: it could not be opened"
                                          : waits         ? "waiting: the disk has not answered yet"
                                                          : "armed");
  if (!description_.empty()) status.detail = fmt::format("{} for {} pods", description_, pods_ ? pods_->size() : 0);
  return {status};
}

}  // namespace evictd::wake
