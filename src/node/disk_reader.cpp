#include "node/disk_reader.hpp"

#include <algorithm>
#include <utility>

#include "async/forget_timer.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::node {
namespace {

using os::now;

}  // namespace

DiskReader::DiskReader(const asio::any_io_executor& reactor, std::unique_ptr<async::Worker> worker, Read read,
                       Listener& listener, core::Duration patience)
    : worker_{std::move(worker)},
      read_{std::make_shared<const Read>(std::move(read))},
      listener_{listener},
      patience_{patience},
      timer_{reactor} {}

void DiskReader::ask(core::Instant since) {
  wanted_ = std::max(wanted_, since);
  const bool suffices = reading_ && reading_->begun >= wanted_;
  if (!begun_ && !suffices) begin();
}

void DiskReader::refresh() {
  if (!begun_) begin();
}

void DiskReader::look(int key, std::move_only_function<void()> then) {
  const auto known = std::ranges::find(waiting_, key, &Waiting::key);
  if (known == waiting_.end())
    waiting_.push_back({key, std::move(then)});
  else
    known->then = std::move(then);
  refresh();
}

void DiskReader::begin() {
  begun_ = now();
  timer_.expires_after(patience_);
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](boost::system::error_code cancelled) {
    if (cancelled || alive.expired() || !begun_ || now() < *begun_ + patience_) return;
    silent_ = true;
    listener_.fell_silent();
  });
  const auto result = std::make_shared<std::optional<os::FileResult<FilesystemReading>>>();
  worker_->run([read = read_, result] { *result = (*read)(); }, [this, result] { end(**std::move(result)); });
}

void DiskReader::end(os::FileResult<FilesystemReading> result) {
  async::forget(timer_);
  const auto begun = *std::exchange(begun_, std::nullopt);
  reading_ = Reading{std::move(result), begun};
  if (std::exchange(silent_, false)) listener_.answers_again(now() - begun);
  for (auto& waiting : std::exchange(waiting_, {})) waiting.then();
  listener_.answered();
  if (!begun_ && begun < wanted_) begin();
}

}  // namespace evictd::node
