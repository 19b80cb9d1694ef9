#include "testbed/event_stream.hpp"

#include <evictd.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "testbed/failure.hpp"
#include "testbed/wait.hpp"

namespace v1 = evictd::v1;

namespace testbed {

std::string key(const v1::PodReference& pod) { return pod.namespace_() + "/" + pod.name(); }

struct EventStream::Call {
  std::unique_ptr<v1::EvictionService::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<Event>> reader;
};

EventStream::EventStream(const std::shared_ptr<grpc::Channel>& channel, const std::vector<Event::Kind>& kinds)
    : call_{std::make_unique<Call>()} {
  call_->stub = v1::EvictionService::NewStub(channel);
  call_->context.set_wait_for_ready(true);
  v1::StreamEventsRequest request;
  request.set_after_sequence(0);
  for (const auto kind : kinds) request.mutable_filter()->add_kinds(kind);
  call_->reader = call_->stub->StreamEvents(&call_->context, request);
  thread_ = std::thread([this] { read(); });
}

EventStream::~EventStream() {
  call_->context.TryCancel();
  thread_.join();
}

void EventStream::read() {
  for (Event event; call_->reader->Read(&event);) {
    const std::lock_guard lock{mutex_};
    events_.push_back(event);
    arrived_.notify_all();
  }
}

std::vector<Event> EventStream::all() const {
  const std::lock_guard lock{mutex_};
  return events_;
}

Event EventStream::wait_for(std::string_view what, std::chrono::milliseconds deadline,
                            const std::function<bool(const Event&)>& fits) {
  std::unique_lock lock{mutex_};
  auto found = events_.end();
  const bool came = arrived_.wait_for(lock, patient(deadline), [&] {
    found = std::ranges::find_if(events_, fits);
    return found != events_.end();
  });
  if (came) return *found;
  std::string seen;
  for (const auto& event : events_) seen += "\n  " + event.ShortDebugString();
  fail(fmt::format("after {} ms there was no event: {}; there were:{}", patient(deadline).count(), what, seen));
}

Event EventStream::wait_for(Event::Kind kind, std::string_view pod, std::chrono::milliseconds deadline) {
  return wait_for(fmt::format("{} of {}", Event::Kind_Name(kind), pod), deadline,
                  [&](const Event& event) { return event.kind() == kind && (pod.empty() || key(event.pod()) == pod); });
}

bool EventStream::has(Event::Kind kind, std::string_view pod) const {
  return std::ranges::any_of(all(),
                             [&](const Event& event) { return event.kind() == kind && key(event.pod()) == pod; });
}

}  // namespace testbed
