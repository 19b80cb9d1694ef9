#pragma once
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <list>
#include <memory>
#include <utility>

#include "core/duration.hpp"
#include "web/server.hpp"

namespace evictd::web {

class Session;

/// The connections that are open, the oldest first, and what they are served.
class Sessions {
 public:
  struct Limits {
    core::Duration idle, request, write, linger;
  };

  Sessions(Content content, OnClientFailure on_client_failure)
      : content{std::move(content)}, on_client_failure{std::move(on_client_failure)} {}

  [[nodiscard]] std::size_t size() const { return open_.size(); }
  /// Ends the connection that has waited longest for a request, where there are `most` already. Where all of them are
  /// being answered, the oldest of those.
  void make_room(std::size_t most);
  void close_all();

  Content content;
  OnClientFailure on_client_failure;
  Limits limits{};

 private:
  friend class Session;
  std::list<Session*> open_;  // one moves to the end when it begins to wait
};

/// Serves a connection until it ends. The session owns itself.
void begin_session(const std::shared_ptr<Sessions>& sessions, boost::asio::ip::tcp::socket socket);

}  // namespace evictd::web
