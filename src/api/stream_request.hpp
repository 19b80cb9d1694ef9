#pragma once
#include <chrono>
#include <cstdint>
#include <optional>

#include "core/error.hpp"
#include "events/event_filter.hpp"

namespace evictd::v1 {
class StreamEventsRequest;
}

namespace evictd::api {

/// What a subscriber wants, checked.
struct StreamPlan {
  std::optional<std::uint64_t> after{};
  bool follow = true;
  bool snapshot = false;
  events::EventFilter filter{};
  std::optional<std::chrono::milliseconds> heartbeat{};  ///< 100 ms to a day
};

/// An error is for the client, as INVALID_ARGUMENT. Any thread.
[[nodiscard]] Result<StreamPlan> read_stream_request(const v1::StreamEventsRequest& request);

}  // namespace evictd::api
