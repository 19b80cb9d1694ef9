#pragma once
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace evictd::test {

inline grpc::ByteBuffer to_buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

inline std::string to_string(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string result;
  if (!buffer.Dump(&slices).ok()) return result;
  for (const auto& slice : slices) result.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return result;
}

struct RawReply {
  grpc::Status status;
  std::string bytes;
};

/// One request, one reply, both as bytes on the wire: for standard services whose generated code Debian does not ship.
inline RawReply raw_call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                         const std::string& request) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto sent = to_buffer(request);
  grpc::ByteBuffer received;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, method, {}, &sent, &received,
                 [&](grpc::Status status) { done.set_value(std::move(status)); });
  auto status = done.get_future().get();
  return {status, status.ok() ? to_string(received) : ""};
}

/// The same over a stream that stays open after the first reply, until this is destroyed.
class RawStream {
 public:
  RawStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, const std::string& request)
      : stub_(channel) {
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(this);
    wait();
    call_->Write(to_buffer(request), this);
    wait();
    grpc::ByteBuffer received;
    call_->Read(&received, this);
    if (wait()) reply = to_string(received);
  }
  ~RawStream() {
    context_.TryCancel();
    grpc::Status ignored;
    call_->Finish(&ignored, this);
    wait();
    queue_.Shutdown();
  }
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;

  std::string reply;

 private:
  bool wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

}  // namespace evictd::test
