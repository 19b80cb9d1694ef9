#include "prekill/socket_directory.hpp"

#include <sys/inotify.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "async/awaited.hpp"
#include "core/printable.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::prekill {
namespace {

constexpr std::uint32_t socket_changes =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_DELETE_SELF;

const std::vector<std::string> no_names;

}  // namespace

SocketDirectory::SocketDirectory(const asio::any_io_executor& reactor, SocketDirectoryOptions options)
    : reactor_{reactor},
      options_{std::move(options)},
      inotify_{reactor, options_.pause, *this},
      timer_{reactor},
      thread_{std::make_unique<async::SideThread>(reactor, "kill hooks")} {
  if (const auto opened = inotify_.open(); !opened) os::log_warning("eviction.hooks: {}", opened.error().message);
  look();
}

const std::vector<std::string>& SocketDirectory::names() const {
  const bool answers = at_work_ == 0 || os::now() - last_sign_of_life_ < options_.patience;
  return answers ? names_ : no_names;
}

void SocketDirectory::run(std::move_only_function<void()> work, std::move_only_function<void()> done) {
  if (at_work_++ == 0) last_sign_of_life_ = os::now();
  thread_->run(std::move(work), [this, done = std::move(done)]() mutable {
    --at_work_;
    last_sign_of_life_ = os::now();
    done();
  });
}

void SocketDirectory::look() {
  if (looking_) {
    look_again_ = true;
    return;
  }
  looking_ = true;
  look_again_ = false;
  lost_ = false;
  auto found = std::make_shared<Found>();
  // First the watch: what comes after it is told.
  run(
      [found, queue = inotify_.duplicate(), path = options_.path] {
        if (queue) found->watch = os::Inotify::add_to(*queue, path, socket_changes);
        found->sockets = list_sockets(path);
      },
      [this, found] { looked(*found); });
}

void SocketDirectory::looked(Found& found) {
  looking_ = false;
  const int watch = found.watch.value_or(-1);
  if (watch_ >= 0 && watch_ != watch) inotify_.remove(watch_);
  watch_ = lost_ ? -1 : watch;
  const bool is_missing = !found.sockets && found.sockets.error().is_gone();
  if (found.sockets)
    names_ = std::move(found.sockets->names);
  else
    names_.clear();
  if (!found.sockets && !is_missing)
    say(found.sockets.error().message);
  else if (found.sockets && !found.watch)
    say(found.watch.error().message);
  else if (found.sockets && found.sockets->is_cut)
    say(core::printable(options_.path) + " has too many entries: some hooks are not asked");
  else
    say("");
  if (look_again_ || lost_) return look();
  if (watch_ >= 0) return;
  timer_.expires_after(options_.interval);
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) look();
  });
}

void SocketDirectory::say(const std::string& wrong) {
  if (!wrong.empty() && wrong != wrong_) os::log_warning("eviction.hooks.directory: {}", wrong);
  wrong_ = wrong;
}

void SocketDirectory::on_event(const os::Inotify::Event& event) {
  const bool has_ended = (event.mask & IN_IGNORED) != 0;
  const bool is_of_earlier_watch = event.watch >= 0 && event.watch != watch_ && !looking_;
  if (is_of_earlier_watch) return;
  if (has_ended && looking_) lost_ = true;
  if (has_ended && event.watch == watch_) watch_ = -1;
  changed_ = true;
}

void SocketDirectory::on_batch_end() {
  if (std::exchange(changed_, false)) look();
}

asio::awaitable<std::optional<SocketDirectory::Connections>> SocketDirectory::connect(std::vector<std::string> names,
                                                                                      core::Instant until) {
  const auto connections = std::make_shared<Connections>();
  const auto awaited = std::make_shared<async::Awaited<Connections>>(reactor_, until);
  run([connections, path = options_.path, names = std::move(names)] { *connections = connect_to_sockets(path, names); },
      [connections, awaited] { awaited->deliver(std::move(*connections)); });
  co_return co_await async::Awaited<Connections>::wait(awaited);
}

}  // namespace evictd::prekill
