#pragma once
#include <grpcpp/client_context.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <exception>
#include <functional>
#include <memory>

#include "core/error.hpp"
#include "evictctl/client.hpp"
#include "evictctl/top/view.hpp"

namespace evictd::ctl {

/// For a coroutine that nobody waits for: what it throws comes out of the loop's run().
inline void rethrow(const std::exception_ptr& thrown) {
  if (thrown) std::rethrow_exception(thrown);
}

/// Asks the agent once a second and follows its events. An agent that goes away is looked for until it is back. gRPC's
/// calls block, so threads of its own make them; everything else is done by who runs the loop.
class Feed {
 public:
  using Connect = std::function<Result<Client>()>;

  /// Keeps the state as the agent has it, except for what the reader chose, and calls `changed` when it did. `connect`
  /// is called on another thread, whenever there is no connection. The loop outlives the feed, but does not run any
  /// more when this goes.
  Feed(boost::asio::io_context& loop, Client first, Connect connect, TopState& state, std::function<void()> changed);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  ~Feed();

  /// The reader chose another signal, whose ranking is to be asked for at once.
  void look_now() { next_look_.cancel(); }

 private:
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<Result<void>> look();
  template <class Request, class Response>
  boost::asio::awaitable<grpc::Status> call(Method<Request, Response> method, const Request& request,
                                            Response& response);
  boost::asio::awaitable<void> follow(std::shared_ptr<const Client> client);
  void lose(const Error& error);
  void add(const v1::Event& event);

  Connect connect_;
  std::function<void()> changed_;
  TopState& state_;
  std::shared_ptr<const Client> client_;
  grpc::ClientContext* call_ = nullptr;    // the one under way
  grpc::ClientContext* stream_ = nullptr;  // of the events
  boost::asio::io_context& loop_;
  boost::asio::steady_timer next_look_;
  boost::asio::thread_pool threads_{2};
};

}  // namespace evictd::ctl
