#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"

namespace evictd::web {

/// One text at a path.
struct Document {
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers{};  ///< more than every answer has
  /// Called on the reactor for each request; must not throw.
  std::function<boost::asio::awaitable<std::string>()> body;
};

using MessagePtr = std::shared_ptr<const std::string>;

/// What one client that stays is sent, as it comes.
class Messages {
 public:
  virtual ~Messages() = default;
  /// The next one; null: it is over. On the reactor, one call at a time.
  virtual boost::asio::awaitable<MessagePtr> next() = 0;
};

/// What is served, by path. Anything else is not there (404).
struct Content {
  std::map<std::string, Document, std::less<>> documents{};
  /// Server-sent events. Null: there are too many clients already (503).
  std::map<std::string, std::function<std::unique_ptr<Messages>()>, std::less<>> streams{};
};

/// Told why the work for a client was given up, such as a lack of memory. That client may come back at once. Called on
/// the reactor; must not throw.
using OnClientFailure = std::function<void(const std::string& reason)>;

struct ServerOptions {
  std::string address = "127.0.0.1";  ///< an IP address
  std::uint16_t port = 0;             ///< 0: any free one
  /// A scraper and a few browsers, which open up to six each. One more takes the place of the one that has waited
  /// longest for its next request, so that whoever holds connections open shuts nobody out.
  std::size_t connections = 64;
  core::Duration idle_timeout = std::chrono::minutes(2);     ///< a scraper comes back every 15 s to 1 min
  core::Duration request_timeout = std::chrono::seconds(5);  ///< from a request's first byte to its last
  core::Duration write_timeout = std::chrono::seconds(10);   ///< for a peer to take an answer, or one message
  core::Duration linger_timeout = std::chrono::seconds(1);   ///< for a peer to read why it is turned away
};

/// An HTTP/1.1 server for a few clients who only look: GET and HEAD, no bodies, headers of 8 KiB. On the reactor.
class Server {
 public:
  Server(boost::asio::any_io_executor reactor, ServerOptions options, Content content,
         OnClientFailure on_client_failure);
  /// Ends what is under way.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Listens. The error is that of the address or of the port, which may be taken: one line that names neither key.
  [[nodiscard]] Result<void> start();
  /// What it listens on, once it does.
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::size_t connections() const;

 private:
  class Listener;
  std::shared_ptr<Listener> listener_;  // coroutines under way share it
};

}  // namespace evictd::web
