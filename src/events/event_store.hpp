#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "core/error.hpp"
#include "events/event_log.hpp"

namespace evictd::events {

class StoreWriter;

/// Keeps events over restarts of the agent, in segments in a directory of its own (events in stateDirectory).
///
/// A thread of its own writes them; the reactor only hands them over, after the handler that told of them, and never
/// waits. Where the disk does not keep up or takes nothing, events are lost on it, which is logged once and shows as a
/// gap after a restart; one that has not answered for 5 s is told of with the next event. Numbers are reserved in
/// blocks before they are given, so none is given twice even after SIGKILL or a power failure: the evictd that starts
/// then goes on beyond the block, unless the last number was rescued. Where that takes longer than 5 s and none is
/// left, they are given all the same. An orderly end leaves the exact number.
class EventStore {
 public:
  /// Numbers reserved at a time; the next ones when half are used.
  static constexpr std::uint64_t block = 65'536;

  /// Reads what is there, whole segments until those are `keep` events or 256 MiB, and waits for the
  /// disk: before the reactor runs. What cannot be read is set aside with a line in the log. `rescued`: of the evictd
  /// before this one; those that are newer than all on the disk are written to it. An error: the directory cannot be
  /// made or written to, or another evictd has it.
  [[nodiscard]] static Result<std::unique_ptr<EventStore>> open(boost::asio::any_io_executor reactor,
                                                                const std::filesystem::path& directory,
                                                                std::size_t keep, const RescuedEvents& rescued = {});
  /// Writes what is left and the last number. Waits for a disk that hangs for 5 s, no longer.
  ~EventStore();
  EventStore(const EventStore&) = delete;
  EventStore& operator=(const EventStore&) = delete;

  /// For the log that goes on with them. Once.
  [[nodiscard]] EarlierEvents take_earlier();
  /// Keeps what is appended to the log from now on; before the log's first event. Either may be destroyed first, the
  /// log while its reactor does not run any more.
  void follow(EventLog& log);

  /// Events that could not be written down since the start. Any thread.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  class Handover;
  EventStore(EarlierEvents earlier, std::shared_ptr<StoreWriter> writer, boost::asio::any_io_executor reactor);

  EarlierEvents earlier_;
  std::shared_ptr<StoreWriter> writer_;  // its thread has it, too
  std::shared_ptr<Handover> handover_;   // posted handlers have it, too
};

}  // namespace evictd::events
