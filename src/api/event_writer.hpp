#pragma once
#include "api/writing_call.hpp"
#include "evictd.grpc.pb.h"

namespace evictd::api {

class EventStream;

/// gRPC's side of a subscription.
class EventWriter final : public WritingCall<EventWriter, EventStream, v1::Event, grpc::ServerAsyncWriter<v1::Event>> {
 public:
  using WritingCall::WritingCall;

  /// What is asked for, whatever its size: it is not kept. Once, on the queue's thread.
  [[nodiscard]] v1::StreamEventsRequest take_request() {
    v1::StreamEventsRequest taken;
    taken.Swap(&request_);
    return taken;
  }

 private:
  void request(Service& service, grpc::ServerContext& context, grpc::ServerAsyncWriter<v1::Event>& stream,
               grpc::ServerCompletionQueue& queue, void* arrived) override {
    service.RequestStreamEvents(&context, &request_, &stream, &queue, &queue, arrived);
  }

  v1::StreamEventsRequest request_;
};

}  // namespace evictd::api
