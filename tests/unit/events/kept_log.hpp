#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "events/event_log.hpp"
#include "events/event_store.hpp"
#include "evictd.pb.h"
#include "fixture/result.hpp"

namespace evictd::test {

/// An event log that is kept in a directory, as one run of evictd has it; its end is an orderly one. Its reactor turns
/// only when the test says so.
class KeptLog {
 public:
  explicit KeptLog(const std::filesystem::path& directory, std::size_t keep = 1000,
                   const events::RescuedEvents& rescued = {})
      : store(fixture::value_of(events::EventStore::open(reactor.get_executor(), directory, keep, rescued))),
        log(std::make_unique<events::EventLog>(reactor.get_executor(), events::EventLogLimits{.history = keep},
                                               store->take_earlier())) {
    store->follow(*log);
  }
  KeptLog(const KeptLog&) = delete;
  KeptLog& operator=(const KeptLog&) = delete;

  std::uint64_t append(const std::string& message = "something happened") {
    v1::Event event;
    event.set_kind(v1::Event::RECOVERED);
    event.set_message(message);
    return log->append(std::move(event)).sequence();
  }

  void append_many(int count) {
    for (int i = 0; i < count; ++i) append();
  }

  /// Hands over what was appended, and hears what the store has to say.
  void turn() {
    reactor.restart();
    reactor.poll();
  }

  boost::asio::io_context reactor{1};
  std::unique_ptr<events::EventStore> store;
  std::unique_ptr<events::EventLog> log;
};

/// What somebody who resumes after this number reads: "3", or "1-2" for a gap.
inline std::vector<std::string> read_after(events::EventLog& log, std::uint64_t after) {
  std::vector<std::string> result;
  const auto subscription = log.subscribe(after, [] {});
  while (const auto next = subscription->next())
    result.push_back(next->kind() == v1::Event::GAP
                         ? std::to_string(next->gap().from()) + "-" + std::to_string(next->gap().to())
                         : std::to_string(next->sequence()));
  return result;
}

/// What a state has of events that were appended to the log, up to its last.
inline events::RescuedEvents rescued_of(events::EventLog& log, std::uint64_t first) {
  events::RescuedEvents rescued{.events = {}, .last = log.last_number(), .reserved = log.reserved()};
  const auto subscription = log.subscribe(first - 1, [] {});
  while (auto event = subscription->next()) rescued.events.push_back(std::move(event));
  return rescued;
}

/// The segments of a directory, in their order.
inline std::vector<std::filesystem::path> segments_of(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> segments;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().filename().native().starts_with("events-") && entry.path().extension().empty())
      segments.push_back(entry.path());
  std::ranges::sort(segments);
  return segments;
}

/// How evictd leaves the directory if it is killed now. What lies in it is copied, events before numbers: as if the
/// writing of events had stopped a little before that of numbers.
inline void copy_as_killed(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::create_directories(to);
  for (const auto& segment : segments_of(from)) {
    std::error_code gone;  // the oldest may be deleted meanwhile
    std::filesystem::copy_file(segment, to / segment.filename(), gone);
  }
  std::filesystem::copy_file(from / "numbers", to / "numbers");
}

}  // namespace evictd::test
