#pragma once
#include <grpcpp/client_context.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "evictctl/client.hpp"
#include "evictctl/top/event_tail.hpp"
#include "evictctl/top/view.hpp"

namespace evictd::ctl {

/// Asks the agent once a second and follows its events, in threads of its own. An agent that goes away is looked for
/// until it is back.
class Feed {
 public:
  using Connect = std::function<Result<Client>()>;

  /// `connect` is called on the feed's thread whenever there is no connection.
  Feed(Client first, Connect connect, std::string signal);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  ~Feed();

  /// A descriptor that can be read when there is news; what is in it is read by take().
  [[nodiscard]] int descriptor() const { return news_fd_; }
  /// Puts what is known into the state, and leaves what the reader chose.
  void take(TopState& state);
  /// The signal whose ranking is asked for, from now on and at once.
  void choose(const std::string& signal);

 private:
  class Call;

  void run();
  void look();
  void follow(std::uint64_t newest);
  void lose(const Error& error);
  void add(v1::Event event);
  bool pause();

  Connect connect_;
  int news_fd_;
  std::shared_ptr<const Client> client_;  // of the thread alone, as the tail
  std::unique_ptr<EventTail> tail_;

  std::mutex mutex_;
  std::condition_variable changed_;
  TopState known_;
  std::string signal_;
  bool asked_ = false;  // the choice is new
  bool stopping_ = false;
  grpc::ClientContext* call_ = nullptr;  // the one under way
  std::thread thread_;
};

}  // namespace evictd::ctl
