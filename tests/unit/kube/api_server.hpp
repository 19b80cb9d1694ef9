#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/certificates.hpp"

namespace evictd::test {

using Headers = std::map<std::string, std::string>;

/// A request as the server got it.
struct Asked {
  std::string method{};
  std::string target{};
  Headers headers{};  ///< names in lower case
  std::string body{};
  int connection = 0;  ///< which of the server's, from 1

  [[nodiscard]] std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
  /// "GET /path?query"
  [[nodiscard]] std::string line() const { return method + " " + target; }
};

/// What a test tells a watch that is on. Any thread.
class Feed {
 public:
  void line(std::string text) { add({.text = std::move(text) + "\n"}); }
  /// As it is: half a line, or garbage.
  void bytes(std::string text) { add({.text = std::move(text)}); }
  /// Ends the answer properly.
  void end() { add({.kind = Step::Kind::End}); }
  /// Breaks the connection in the middle of a chunk.
  void cut() { add({.kind = Step::Kind::Cut}); }

 private:
  friend class Exchange;
  struct Step {
    enum class Kind { Text, End, Cut };
    Kind kind = Kind::Text;
    std::string text{};
  };
  void add(Step step);
  std::optional<Step> take();  // waits a moment

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Step> steps_;
};
using FeedPtr = std::shared_ptr<Feed>;

/// One request and its answer, for handlers. On a thread of the server's that has nothing else to do: it may wait.
class Exchange {
 public:
  class Wire;
  Exchange(Wire& wire, Asked asked) : asked_{std::move(asked)}, wire_{wire} {}

  [[nodiscard]] const Asked& asked() const { return asked_; }

  /// A whole answer. The content type is application/json unless the headers say otherwise.
  void answer(int status, std::string_view body, const Headers& headers = {});
  /// A refusal as the API server writes it: a Status object.
  void refuse(int status, std::string_view reason, std::string_view message, const Headers& headers = {});
  /// A chunked answer of what the feed gets, until its end, the client's, or the server's.
  void stream(Feed& feed);
  /// Any bytes instead of an answer.
  void raw(std::string_view bytes);
  /// Breaks the connection.
  void cut();
  /// Says nothing (more) until the client breaks the connection or the server stops.
  void hold();

 private:
  Asked asked_;
  Wire& wire_;
};

using Handler = std::function<void(Exchange&)>;
/// Handlers that do one thing.
[[nodiscard]] Handler answers(int status, std::string body, Headers headers = {});
[[nodiscard]] Handler refuses(int status, std::string reason, std::string message, Headers headers = {});
[[nodiscard]] Handler streams(FeedPtr feed);

struct ServerTls {
  Issued identity{};
  std::string client_authority{};  ///< PEM; if it is given, clients need a certificate of this authority
  bool only_old = false;           ///< speaks nothing newer than TLS 1.1
};

/// An HTTP server on 127.0.0.1 of real Beast and OpenSSL, which does what a test tells it, one thread for each
/// connection. Any thread may call its methods.
class ApiServer {
 public:
  explicit ApiServer(std::optional<ServerTls> tls = {});
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;
  /// Breaks all connections and waits for the handlers' ends.
  ~ApiServer();

  [[nodiscard]] int port() const;
  /// "https://127.0.0.1:PORT"; `host`: another name of this machine.
  [[nodiscard]] std::string url(std::string_view host = "127.0.0.1") const;

  /// Does the next request that nothing was said about yet, in the order of the calls.
  void then(Handler handler);
  /// Does all requests that then() has nothing for. Without it they are answered 404.
  void otherwise(Handler handler);
  /// Another certificate for new connections.
  void present(const Issued& identity);

  /// Breaks all connections; the server listens on.
  void cut_all();
  /// Breaks all connections and refuses new ones; then listens at the same port again.
  void stop_listening();
  void listen_again();

  [[nodiscard]] std::vector<Asked> asked() const;
  /// Their lines, in order.
  [[nodiscard]] std::vector<std::string> lines() const;
  /// Accepted so far, whether or not a handshake followed.
  [[nodiscard]] int connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace evictd::test
