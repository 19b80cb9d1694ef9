#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "kube/credentials.hpp"
#include "kube/message.hpp"

namespace evictd::kube {

/// An answer that goes on and on, handed out line by line: a watch.
class LineStream {
 public:
  struct Impl;
  explicit LineStream(std::shared_ptr<Impl> impl) : impl_{std::move(impl)} {}
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;
  /// As close().
  ~LineStream();

  /// The next line, without its end; nothing when the server has ended the answer properly. Error: the connection broke
  /// or the client was stopped, nothing came for `idle`, or a line is too long; the stream is closed then. One call at
  /// a time.
  boost::asio::awaitable<Result<std::optional<std::string>>> next(core::Duration idle);

  /// Ends the connection. A next() under way ends with an error.
  void close();

 private:
  std::shared_ptr<Impl> impl_;
};

struct Opened {
  Response response{};                  ///< its body is there unless `lines` is
  std::unique_ptr<LineStream> lines{};  ///< where the status is 2xx
};

struct ClientOptions {
  /// A token file is read again when what is known of it is older. Kubernetes renews a token when a fifth of its life
  /// is left (2 minutes of the shortest one); client-go looks every minute too.
  core::Duration token_age = std::chrono::minutes{1};
  /// For how long one unused connection is kept. Below what load balancers allow (some drop after 60 s, silently).
  core::Duration keep_idle = std::chrono::seconds{50};
  std::size_t largest_body = std::size_t{32} << 20;  ///< bytes; a list of 500 pods takes some 10 MiB
  /// Bytes. etcd takes no object above 1.5 MiB; as JSON it may be a few times as long.
  std::size_t longest_line = std::size_t{8} << 20;
};

/// A client of one API server over HTTP/1.1, plain or TLS (1.2 at least). The server's certificate must be signed by
/// the given authorities and be made out to the host's name or address; there is no way to switch that off.
///
/// Every method is an awaitable that completes on the reactor, at the latest at its deadline; nothing is thrown. Calls
/// may run side by side, each on a connection of its own; one idle connection is kept and used again. Redirects and
/// proxies are not followed. Errors are one line: "https://10.0.0.1:6443: certificate is not valid for 10.0.0.1".
///
/// Token and certificates are read when a connection is made and when the token has aged (ClientOptions::token_age).
/// After a 401 they are read at once, and if they have changed the request is sent again; otherwise the 401 is the
/// answer. A read that fails leaves the last ones in use; so does one that hangs, of which one request waits a second
/// at most, and beside which no other is begun. Where a kept connection turns out to be dead before the answer begins,
/// GET, PUT, PATCH and DELETE are sent again over a new one; POST fails.
///
/// What it costs the reactor, measured on the loopback: 1.2 ms of processor time for a TLS connection, 20 µs for a
/// request over a kept one. The kept connection counts as work for io_context::run() until it is dropped.
///
/// For the reactor's thread. `workers` reads the files. Their disk may hang, so it must not be a pool that anything
/// else waits for, and its threads must have ended before the reactor is destroyed.
class Client {
 public:
  Client(boost::asio::any_io_executor reactor, boost::asio::any_io_executor workers, Credentials credentials,
         ClientOptions options = {});
  /// As stop(). Awaitables under way still complete if the reactor runs on.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// "https://10.0.0.1:6443"
  [[nodiscard]] const std::string& url() const;

  /// Connects if need be, sends, reads the whole answer. `deadline`: for all of it.
  boost::asio::awaitable<Result<Response>> send(Request request, core::Duration deadline);
  /// The same until the answer's head is there; the body of a success is then read as lines.
  boost::asio::awaitable<Result<Opened>> open(Request request, core::Duration deadline);

  /// Ends all connections: what is under way fails within the reactor's next turn, and so does whatever is asked later.
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace evictd::kube
