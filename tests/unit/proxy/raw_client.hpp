#pragma once
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/raw_call.hpp"
#include "proxy/raw_server.hpp"

namespace evictd::test {

/// A connection of its own, without limits.
inline std::shared_ptr<grpc::Channel> raw_channel(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 16 << 20);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

/// A call of any kind as a client sees it, with operations that block; one thread's at a time. It has a minute unless
/// told otherwise.
class RawClientCall {
 public:
  struct Options {
    Metadata metadata{};
    std::optional<std::chrono::milliseconds> time = std::chrono::minutes{1};  ///< absent: no deadline
  };

  RawClientCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : RawClientCall(channel, method, Options{}) {}
  RawClientCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, const Options& options)
      : stub_(channel) {
    for (const auto& [key, value] : options.metadata) context_.AddMetadata(key, value);
    if (options.time) context_.set_deadline(std::chrono::system_clock::now() + *options.time);
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(this);
    wait();
  }
  ~RawClientCall() {
    if (!finished_) {
      cancel();
      finish();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  RawClientCall(const RawClientCall&) = delete;
  RawClientCall& operator=(const RawClientCall&) = delete;

  bool write(const std::string& bytes) {
    call_->Write(to_buffer(bytes), this);
    return wait();
  }
  bool writes_done() {
    call_->WritesDone(this);
    return wait();
  }
  /// Nothing: the end.
  std::optional<std::string> read() {
    grpc::ByteBuffer message;
    call_->Read(&message, this);
    if (!wait()) return std::nullopt;
    return to_string(message);
  }
  /// Waits for it.
  Metadata initial_metadata() {
    call_->ReadInitialMetadata(this);
    wait();
    return headers(context_.GetServerInitialMetadata());
  }
  grpc::Status finish() {
    grpc::Status status;
    call_->Finish(&status, this);
    wait();
    finished_ = true;
    return status;
  }
  /// After finish().
  [[nodiscard]] Metadata trailing_metadata() const { return headers(context_.GetServerTrailingMetadata()); }
  void cancel() { context_.TryCancel(); }

 private:
  static Metadata headers(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
    Metadata result;
    for (const auto& [key, value] : metadata)
      result.emplace_back(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
    return result;
  }
  bool wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

/// All that came back of a call with one request.
struct Exchanged {
  Metadata initial;
  std::vector<std::string> messages;
  grpc::Status status;
  Metadata trailing;
};

inline Exchanged exchange(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                          const std::string& request, const RawClientCall::Options& options = {}) {
  RawClientCall call(channel, method, options);
  Exchanged result;
  call.write(request);
  call.writes_done();
  result.initial = call.initial_metadata();
  while (auto message = call.read()) result.messages.push_back(*std::move(message));
  result.status = call.finish();
  result.trailing = call.trailing_metadata();
  return result;
}

}  // namespace evictd::test
