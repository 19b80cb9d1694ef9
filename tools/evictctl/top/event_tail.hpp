#pragma once
#include <grpcpp/client_context.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "evictctl/client.hpp"
#include "evictd.pb.h"

namespace evictd::ctl {

/// Follows the agent's events, in a thread of its own, until the stream ends or this goes.
class EventTail {
 public:
  /// `tell` is called on that thread with every event after this number.
  EventTail(std::shared_ptr<const Client> client, std::uint64_t after, std::function<void(v1::Event)> tell);
  EventTail(const EventTail&) = delete;
  EventTail& operator=(const EventTail&) = delete;
  ~EventTail();

  [[nodiscard]] bool ended() const { return ended_; }

 private:
  void follow(std::uint64_t after, const std::function<void(v1::Event)>& tell);

  std::shared_ptr<const Client> client_;
  grpc::ClientContext call_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace evictd::ctl
