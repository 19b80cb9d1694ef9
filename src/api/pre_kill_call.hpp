#pragma once
#include "api/writing_call.hpp"
#include "evictd.grpc.pb.h"
#include "rpc/server/completion.hpp"

namespace evictd::api {

class PreKillStream;

using PreKillGrpcStream = grpc::ServerAsyncReaderWriter<v1::PreKillIntent, v1::PreKillAnswer>;

/// gRPC's side of a PreKill call: one read at a time as well.
class PreKillCall final : public WritingCall<PreKillCall, PreKillStream, v1::PreKillIntent, PreKillGrpcStream> {
 public:
  using WritingCall::WritingCall;
  using IntentPtr = MessagePtr;

  /// Waits for a message; the stream hears `received` afterwards. On the reactor, with no other read under way.
  void read();

 private:
  void request(Service& service, grpc::ServerContext& context, PreKillGrpcStream& stream,
               grpc::ServerCompletionQueue& queue, void* arrived) override {
    service.RequestPreKill(&context, &stream, &queue, &queue, arrived);
  }
  /// On the queue's thread.
  void on_read(bool ok);

  rpc::OwnCompletion<PreKillCall> read_tag_{*this, &PreKillCall::on_read};
  v1::PreKillAnswer incoming_;  // gRPC's while a read is under way
};

}  // namespace evictd::api
