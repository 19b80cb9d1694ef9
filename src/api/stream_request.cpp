#include "api/stream_request.hpp"

#include <fmt/format.h>

#include <utility>

#include "evictd.pb.h"

using namespace std::chrono_literals;

namespace evictd::api {
namespace {

Result<std::chrono::milliseconds> read_heartbeat(const google::protobuf::Duration& given) {
  constexpr std::chrono::seconds longest = 24h;
  if (given.seconds() > longest.count())
    return fail(fmt::format("heartbeat: {} s is more than a day: leave it out for none", given.seconds()));
  const auto time = given.seconds() < 0
                        ? std::chrono::nanoseconds{-1}
                        : std::chrono::seconds(given.seconds()) + std::chrono::nanoseconds(given.nanos());
  if (time < 100ms)
    return fail(fmt::format("heartbeat: {} s and {} ns are less than 100 ms", given.seconds(), given.nanos()));
  return std::chrono::ceil<std::chrono::milliseconds>(time);
}

}  // namespace

Result<StreamPlan> read_stream_request(const v1::StreamEventsRequest& request) {
  if (request.snapshot() && request.has_after_sequence())
    return fail(
        fmt::format("snapshot and after_sequence ({}) exclude each other: what follows a snapshot begins after it",
                    request.after_sequence()));
  StreamPlan plan{.follow = !request.has_follow() || request.follow(), .snapshot = request.snapshot()};
  if (request.has_after_sequence()) plan.after = request.after_sequence();
  auto filter = events::EventFilter::make(request.filter());
  if (!filter) return std::unexpected(filter.error());
  plan.filter = *std::move(filter);
  if (request.has_heartbeat()) {
    const auto heartbeat = read_heartbeat(request.heartbeat());
    if (!heartbeat) return std::unexpected(heartbeat.error());
    plan.heartbeat = *heartbeat;
  }
  return plan;
}

}  // namespace evictd::api
