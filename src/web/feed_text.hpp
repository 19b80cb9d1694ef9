#pragma once
#include <string>
#include <vector>

#include "events/event_log.hpp"

namespace evictd::v1 {
class NodeStatus;
}

namespace evictd::web {

// Messages of the feed, ready to be sent. On any thread.

[[nodiscard]] std::string snapshot_text(v1::NodeStatus status, const std::vector<events::EventPtr>& events);
[[nodiscard]] std::string status_text(v1::NodeStatus status);
[[nodiscard]] std::string events_text(const std::vector<events::EventPtr>& events);

}  // namespace evictd::web
