#pragma once

namespace evictd::v1 {
class NodeStatus;
}

namespace evictd::events {

/// The node's status at this moment, for those who show it. On the reactor.
class StatusSource {
 public:
  [[nodiscard]] virtual v1::NodeStatus status() = 0;

 protected:
  ~StatusSource() = default;
};

}  // namespace evictd::events
