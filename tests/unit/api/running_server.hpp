#pragma once
#include <doctest/doctest.h>
#include <grpcpp/grpcpp.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "api/server.hpp"
#include "api/temporary_directory.hpp"
#include "events/event_log.hpp"
#include "evictd.grpc.pb.h"
#include "fixture/patience.hpp"

namespace evictd::test {

/// Asks again until the answer is yes, at most for `patience`.
template <class Condition>
[[nodiscard]] bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// A reactor on a thread of its own; `run` does something there and waits for it.
class Reactor {
 public:
  ~Reactor() { stop(); }

  /// What is its own may be destroyed by others once this is over.
  void stop() {
    if (!thread_.joinable()) return;
    work_.reset();
    thread_.join();
  }

  template <class Function>
  auto run(Function function) {
    std::packaged_task<std::invoke_result_t<Function>()> task(std::move(function));
    auto result = task.get_future();
    boost::asio::post(context, [&task] { task(); });
    return result.get();
  }

  boost::asio::io_context context{1};

 private:
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(context);
  std::thread thread_{[this] { context.run(); }};
};

/// A client on a connection of its own.
class Client {
 public:
  explicit Client(const std::string& socket) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel = grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
    stub = v1::EvictionService::NewStub(channel);
  }

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::EvictionService::Stub> stub;
};

/// One subscription; it stands once the constructor is through, unless the server refused it.
class Subscriber {
 public:
  Subscriber(v1::EvictionService::Stub& stub, const v1::StreamEventsRequest& request) {
    context_.set_deadline(std::chrono::system_clock::now() + patience);
    reader_ = stub.StreamEvents(&context_, request);
    reader_->WaitForInitialMetadata();
  }
  ~Subscriber() {
    if (finished_) return;
    context_.TryCancel();
    finish();
  }
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  /// False at the end of the stream.
  bool read(v1::Event& event) { return reader_->Read(&event); }

  v1::Event read() {
    v1::Event event;
    REQUIRE(read(event));
    return event;
  }

  /// Reads what is left and gives the status.
  grpc::Status finish() {
    for (v1::Event event; read(event);) {
    }
    finished_ = true;
    return reader_->Finish();
  }

  void cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::Event>> reader_;
  bool finished_ = false;
};

inline v1::StreamEventsRequest new_events() { return {}; }

inline v1::StreamEventsRequest events_after(std::uint64_t sequence) {
  v1::StreamEventsRequest request;
  request.set_after_sequence(sequence);
  return request;
}

inline v1::StreamEventsRequest kept_events(std::uint64_t after = 0) {
  auto request = events_after(after);
  request.set_follow(false);
  return request;
}

/// A server with its log on a running reactor.
class RunningServer final : events::StatusSource, api::RankHandler {
 public:
  explicit RunningServer(api::ServerOptions options = {}, events::EventLogLimits limits = {},
                         events::EarlierEvents earlier = {})
      : log(reactor.context.get_executor(), limits, std::move(earlier)) {
    if (options.socket == api::ServerOptions{}.socket) options.socket = directory / "evictd.sock";
    if (options.admin_socket.empty()) options.admin_socket = directory / "admin.sock";
    socket = options.socket;
    admin_socket = options.admin_socket;
    server = std::make_unique<api::Server>(std::move(options), log, api::Handlers{.status = *this, .ranking = this});
    const auto started = reactor.run([this] { return server->start(); });
    REQUIRE_MESSAGE(started.has_value(), (started ? "" : started.error().message));
  }
  ~RunningServer() {
    reactor.run([this] { server.reset(); });
    reactor.stop();
  }

  /// Appends `count` events whose messages have `size` bytes, each on a turn of its own.
  void append(std::size_t count, std::size_t size = 16) {
    for (std::size_t i = 0; i < count; ++i)
      reactor.run([&] {
        v1::Event event;
        event.set_kind(v1::Event::RECOVERED);
        event.set_message(std::string(size, 'x'));
        log.append(std::move(event));
      });
  }

  [[nodiscard]] std::size_t subscribers() {
    return reactor.run([this] { return log.subscribers(); });
  }

  TemporaryDirectory directory;
  std::string socket;
  std::string admin_socket;
  v1::NodeStatus node;                                   // its status
  std::map<std::string, v1::RankPodsResponse> rankings;  // by signal
  v1::RankPodsRequest asked;                             // for a ranking, the last time
  Reactor reactor;
  events::EventLog log;
  std::unique_ptr<api::Server> server;

 private:
  v1::NodeStatus status() override { return node; }
  api::Answer<v1::RankPodsResponse> rank_pods(const v1::RankPodsRequest& request) override {
    asked = request;
    const auto found = rankings.find(request.signal());
    if (found != rankings.end()) return found->second;
    return std::unexpected(api::Refusal{api::RefusalCode::FailedPrecondition, "no pods are known"});
  }
};

}  // namespace evictd::test
