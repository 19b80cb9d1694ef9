#include "events/event_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "events/number_file.hpp"
#include "events/segment_reader.hpp"
#include "events/store_writer.hpp"
#include "evictd.pb.h"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace evictd::events {
namespace {

Result<void> make_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return fail(fmt::format("{} cannot be made: {}", directory.native(), error.message()));
  return {};
}

/// Held until the descriptor is closed.
Result<os::FileDescriptor> lock(const fs::path& directory) {
  const auto path = directory / "lock";
  os::FileDescriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) return fail(fmt::format("{}: {}", path.native(), os::reason(errno)));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) return fail(fmt::format("another evictd keeps its events in {}", directory.native()));
  return fail(fmt::format("{}: {}", path.native(), os::reason(errno)));
}

std::uint64_t last_of(const std::vector<EventPtr>& events) { return events.empty() ? 0 : events.back()->sequence(); }

/// Whether the rescued number is the last one that was given: it is of the agent that has reserved its numbers last and
/// did not end in order, and the disk knows nothing newer. After an orderly end the number is the last one that was
/// given or told as lost, also where it happens to be what another agent had reserved.
bool is_the_last(const RescuedEvents& rescued, const NumberFile& numbers, const std::vector<EventPtr>& stored) {
  return numbers.highest() == rescued.reserved && numbers.lowered_from() == 0 && last_of(stored) <= rescued.last;
}

/// No number up to this one may be given again. Where the file of numbers is lost, or older than the events, those that
/// were told beyond the last event on disk are in the block that was in use, or in the next.
std::uint64_t highest_number(const NumberFile& numbers, const std::vector<EventPtr>& events) {
  const auto highest = numbers.highest().value_or(0);
  if (last_of(events) <= highest) return highest;
  return last_of(events) + 2 * EventStore::block;
}

}  // namespace

/// The reactor's side: gathers what one handler tells, and hands it over after it.
class EventStore::Handover final : public EventListener, public std::enable_shared_from_this<Handover> {
 public:
  Handover(asio::any_io_executor reactor, std::shared_ptr<StoreWriter> writer, std::uint64_t last,
           std::uint64_t reserved)
      : reactor_(std::move(reactor)), writer_(std::move(writer)), last_(last), wanted_(reserved) {}

  void appended(const EventPtr& event) override {
    gathered_.push_back(event);
    last_ = event->sequence();
    if (!std::exchange(posted_, true)) asio::post(reactor_, [self = shared_from_this()] { self->hand_over(); });
  }

  void hand_over() {
    posted_ = false;
    if (last_ + block / 2 > wanted_) wanted_ = last_ + block;
    writer_->take(std::exchange(gathered_, {}), wanted_);
  }

  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  asio::any_io_executor reactor_;
  std::shared_ptr<StoreWriter> writer_;
  std::vector<EventPtr> gathered_;
  std::uint64_t last_;
  std::uint64_t wanted_;  // what was asked to be reserved
  bool posted_ = false;
};

Result<std::unique_ptr<EventStore>> EventStore::open(asio::any_io_executor reactor, const fs::path& directory,
                                                     std::size_t keep, const RescuedEvents& rescued) {
  if (auto made = make_directory(directory); !made) return std::unexpected(made.error());
  auto locked = lock(directory);
  if (!locked) return std::unexpected(locked.error());
  auto numbers = NumberFile::open(directory / "numbers");
  if (!numbers) return std::unexpected(numbers.error());
  auto loaded = load_segments(directory, keep);
  if (!numbers->complaint().empty()) loaded.complaints.push_back(numbers->complaint());
  for (const auto& complaint : loaded.complaints) os::log_warning("stateDirectory: {}", complaint);

  const auto last_stored = last_of(loaded.events);
  const auto last =
      is_the_last(rescued, *numbers, loaded.events) ? rescued.last : highest_number(*numbers, loaded.events);
  auto earlier = merged({.events = std::move(loaded.events), .last = last}, rescued);
  // Never as much as the agent before: its state, should it come back, is to be told from that of this agent.
  earlier.reserved = std::max(earlier.last + block, numbers->lowered_from() + 1);
  if (auto written = numbers->write(earlier.reserved); !written) return std::unexpected(written.error());
  sync_directory(directory);
  auto writer = std::make_shared<StoreWriter>(StoreWriter::Parts{
      .reactor = reactor,
      .lock = *std::move(locked),
      .numbers = *std::move(numbers),
      .segments = SegmentWriter(directory, keep, std::move(loaded.segments)),
      .reserved = earlier.reserved,
  });
  writer->start();
  const auto newer = std::ranges::upper_bound(earlier.events, last_stored, {},
                                              [](const EventPtr& event) { return event->sequence(); });
  writer->take({newer, earlier.events.end()}, earlier.reserved);
  return std::unique_ptr<EventStore>(new EventStore(std::move(earlier), std::move(writer), std::move(reactor)));
}

EventStore::EventStore(EarlierEvents earlier, std::shared_ptr<StoreWriter> writer, asio::any_io_executor reactor)
    : earlier_(std::move(earlier)),
      writer_(std::move(writer)),
      handover_(std::make_shared<Handover>(std::move(reactor), writer_, earlier_.last, earlier_.reserved)) {}

EventStore::~EventStore() {
  writer_->forget_log();  // it may be gone
  handover_->hand_over();
  if (!writer_->finish(handover_->last()))
    os::log_warning("stateDirectory: the disk does not answer; the events' last number is not written down");
}

EarlierEvents EventStore::take_earlier() {
  auto earlier = std::exchange(earlier_.events, {});
  return {.events = std::move(earlier), .last = earlier_.last, .reserved = earlier_.reserved};
}

void EventStore::follow(EventLog& log) {
  writer_->reserve_for(log);
  log.store_with(handover_);
}

std::uint64_t EventStore::lost() const { return writer_->lost(); }

}  // namespace evictd::events
