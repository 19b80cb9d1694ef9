#pragma once
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace evictd::test {

/// Metadata in the order of their keys.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// A call as a server sees it, with operations that block.
class RawServerCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RawServerCall(grpc::GenericCallbackServerContext& context) : context_(context) {}

  [[nodiscard]] const std::string& method() const { return context_.method(); }
  [[nodiscard]] Metadata metadata() const;
  /// Absent: it has none.
  [[nodiscard]] std::optional<std::chrono::milliseconds> time_left() const;

  void add_initial_metadata(const Metadata& headers);
  void add_trailing_metadata(const Metadata& headers);
  bool send_initial_metadata();
  /// Nothing: the client has no more, or the call is cancelled.
  std::optional<std::string> read();
  bool write(const std::string& bytes);
  /// Whether it is, within a minute.
  [[nodiscard]] bool wait_until_cancelled();
  [[nodiscard]] bool is_cancelled() const { return context_.IsCancelled(); }

 private:
  friend class RawServer;

  void OnSendInitialMetadataDone(bool ok) override { sent_.set(ok); }
  void OnReadDone(bool ok) override { read_.set(ok); }
  void OnWriteDone(bool ok) override { written_.set(ok); }
  void OnCancel() override { cancelled_.set(true); }
  void OnDone() override { done_.set(true); }

  /// The result of an operation, handed from a thread of gRPC to the one that waits.
  class Result {
   public:
    void set(bool value);
    bool take();
    bool seen_within(std::chrono::seconds time);

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<bool> value_;
  };

  grpc::GenericCallbackServerContext& context_;
  grpc::ByteBuffer message_;
  Result sent_;
  Result read_;
  Result written_;
  Result cancelled_;
  Result done_;
};

/// A server on a unix socket that answers whatever is called by one function, on a thread for each call.
class RawServer {
 public:
  using Handler = std::function<grpc::Status(RawServerCall&)>;

  RawServer(const std::string& socket, Handler handler);
  /// Cancels what is under way.
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  [[nodiscard]] int calls() const;

 private:
  class Service final : public grpc::CallbackGenericService {
   public:
    explicit Service(RawServer& server) : server_(server) {}
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

   private:
    RawServer& server_;
  };

  Handler handler_;
  Service service_{*this};
  mutable std::mutex mutex_;
  std::vector<std::thread> threads_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace evictd::test
