#include "evictctl/top/event_tail.hpp"

#include <utility>

namespace evictd::ctl {

EventTail::EventTail(std::shared_ptr<const Client> client, std::uint64_t after, std::function<void(v1::Event)> tell)
    : client_{std::move(client)}, thread_{[this, after, tell = std::move(tell)] { follow(after, tell); }} {}

EventTail::~EventTail() {
  call_.TryCancel();
  thread_.join();
}

void EventTail::follow(std::uint64_t after, const std::function<void(v1::Event)>& tell) {
  v1::StreamEventsRequest request;
  request.set_after_sequence(after);
  const auto reader = client_->evictions().StreamEvents(&call_, request);
  for (v1::Event event; reader->Read(&event);) tell(event);
  (void)reader->Finish();  // whatever ended it, the next look at the status tells
  ended_ = true;
}

}  // namespace evictd::ctl
