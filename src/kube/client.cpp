#include "kube/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "async/awaited.hpp"
#include "kube/exchange.hpp"
#include "kube/identity.hpp"
#include "kube/lines.hpp"
#include "kube/name_lookups.hpp"
#include "kube/transport.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::kube {
namespace {

using os::now;

/// A disk that works is through with small files in a millisecond. One that hangs takes so much of one request.
constexpr std::chrono::seconds longest_read{1};

/// Requests end, and are tried again, sooner than the system's resolver gives up; their look-ups pile up no further.
constexpr std::size_t most_lookups = 4;

/// Sent twice they do no more than sent once; our POSTs create objects.
bool may_repeat(const Request& request) { return request.method != "POST"; }

struct Connection {
  std::shared_ptr<Transport> transport;
  IdentityPtr identity;  // by whose certificate it was opened
};

/// A connection with a request on it whose answer has begun: the head is there.
struct Begun {
  std::shared_ptr<Transport> transport;
  ResponseReader reader;
  IdentityPtr identity;  // as the request was sent
  Response head;
};

asio::awaitable<Result<void>> read_some(Transport& transport, ResponseReader& reader, core::Instant end) {
  const auto count = co_await transport.read_some(reader.space(), end);
  if (!count) co_return std::unexpected(count.error());
  co_return reader.received(*count);
}

asio::awaitable<Result<void>> exchange(Transport& transport, ResponseReader& reader, const std::string& bytes,
                                       core::Instant end) {
  auto done = co_await transport.write(bytes, end);
  while (done && !reader.has_head()) done = co_await read_some(transport, reader, end);
  co_return done;
}

}  // namespace

struct Client::Impl {
  using Self = std::shared_ptr<Impl>;

  Impl(asio::any_io_executor reactor_executor, asio::any_io_executor worker_executor, Credentials given,
       ClientOptions chosen)
      : reactor{std::move(reactor_executor)},
        workers{std::move(worker_executor)},
        credentials{std::make_shared<const Credentials>(std::move(given))},
        options{chosen},
        url{credentials->server.url()},
        idle_timer{reactor} {}

  void stop() {
    stopped = true;
    idle_timer.cancel();
    idle.reset();
    for (const auto& weak : connections)
      if (const auto connection = weak.lock()) connection->close();
    connections.clear();
  }

  /// Reads the files again. Yields what was known before if that fails, or takes too long. While a read hangs no other
  /// one is begun, for it would hang behind it; what it finds in the end counts.
  static asio::awaitable<Result<IdentityPtr>> refresh(Self self, core::Instant end) {
    if (self->read_hangs && self->identity) co_return self->identity;
    if (self->read_hangs) co_return fail("the credentials' files could not be read in time");
    const auto patience = self->identity ? now() + std::min<core::Duration>(longest_read, (end - now()) / 2) : end;
    const auto awaited = std::make_shared<async::Awaited<Result<IdentityPtr>>>(self->reactor, patience);
    asio::post(self->workers, [credentials = self->credentials, previous = self->identity, reactor = self->reactor,
                               awaited, weak = std::weak_ptr(self)]() mutable {
      auto read = read_identity(*credentials, previous);
      asio::post(reactor, [awaited = std::move(awaited), weak = std::move(weak), read = std::move(read)]() mutable {
        if (const auto impl = weak.lock()) impl->has_read(read);
        awaited->deliver(std::move(read));
      });
    });
    const auto read = co_await async::Awaited<Result<IdentityPtr>>::wait(awaited);
    if (self->stopped) co_return fail("stopped");
    self->read_hangs = !read;
    if (self->identity) co_return self->identity;
    if (!read) co_return fail("the credentials' files could not be read in time");
    co_return std::unexpected(read->error());
  }

  void has_read(const Result<IdentityPtr>& read) {
    read_hangs = false;
    if (!read) return;
    identity = *read;
    identity_read = now();
  }

  /// The connection that is kept, if it is good for another request, as `identity` is now. An API server looks at each
  /// request whether the connection's certificate has expired: where it was renewed since, a new one is needed.
  std::optional<Connection> take_idle() {
    idle_timer.cancel();
    auto connection = std::exchange(idle, std::nullopt);
    if (!connection) return std::nullopt;
    if (connection->transport->is_idle() && connection->identity->material == identity->material)
      return Connection{.transport = std::move(connection->transport), .identity = identity};
    connection->transport->close();
    return std::nullopt;
  }

  static void give_back(const Self& self, Connection connection) {
    if (self->stopped || self->idle) return connection.transport->close();
    self->idle = std::move(connection);
    self->idle_timer.expires_after(self->options.keep_idle);
    self->idle_timer.async_wait([weak = std::weak_ptr(self)](const boost::system::error_code& error) {
      const auto impl = weak.lock();
      if (error || !impl || !impl->idle) return;
      impl->idle->transport->close();
      impl->idle.reset();
    });
  }

  static asio::awaitable<Result<Connection>> connect(Self self, core::Instant end) {
    const auto identity = co_await refresh(self, end);
    if (!identity) co_return std::unexpected(identity.error());
    const Connection connection{.transport = make_transport(self->reactor, self->lookups, self->credentials->server,
                                                            self->credentials->tls_server_name, *identity),
                                .identity = *identity};
    std::erase_if(self->connections, [](const auto& weak) { return weak.expired(); });
    self->connections.push_back(connection.transport);
    const auto opened = co_await connection.transport->open(end);
    if (!opened) co_return std::unexpected(opened.error());
    co_return connection;
  }

  [[nodiscard]] bool has_aged_token() const {
    return !credentials->token.file.empty() && now() - identity_read >= options.token_age;
  }

  /// Sends over the kept connection or a new one. `reused` tells which.
  static asio::awaitable<Result<Begun>> attempt(Self self, const Request& request, ResponseLimits limits,
                                                core::Instant end, bool& reused) {
    if (reused && self->idle && self->has_aged_token())
      if (const auto refreshed = co_await refresh(self, end); !refreshed) co_return std::unexpected(refreshed.error());
    auto connection = reused ? self->take_idle() : std::nullopt;
    reused = connection.has_value();
    if (!connection) {
      auto connected = co_await connect(self, end);
      if (!connected) co_return std::unexpected(connected.error());
      connection = *std::move(connected);
    }

    Begun begun{.transport = std::move(connection->transport),
                .reader = ResponseReader{limits},
                .identity = std::move(connection->identity),
                .head = {}};
    const auto bytes = request_bytes(request, self->credentials->server, begun.identity->token);
    if (!bytes) co_return std::unexpected(bytes.error());
    const auto done = co_await exchange(*begun.transport, begun.reader, *bytes, end);
    if (!done) {
      begun.transport->close();
      reused = reused && !begun.reader.has_begun();
      co_return std::unexpected(done.error());
    }
    begun.head = begun.reader.take();
    reused = false;
    co_return begun;
  }

  static asio::awaitable<Result<Begun>> begin(Self self, const Request& request, ResponseLimits limits,
                                              core::Instant end) {
    bool is_second = false;
    for (bool try_idle = true;;) {
      if (self->stopped) co_return fail("stopped");
      bool died_idle = try_idle;
      auto begun = co_await attempt(self, request, limits, end, died_idle);
      if (!begun && died_idle && may_repeat(request) && now() < end && !self->stopped) {
        try_idle = false;
        continue;
      }
      if (!begun || begun->head.status != 401 || is_second) co_return begun;

      const auto fresh = co_await refresh(self, end);
      if (!fresh || !(*fresh)->differs_from(*begun->identity)) co_return begun;
      begun->transport->close();
      is_second = true;
      try_idle = false;
    }
  }

  /// The rest of the answer; then the connection is kept or closed.
  static asio::awaitable<Result<Response>> finish(Self self, Begun& begun, std::optional<std::size_t> limit,
                                                  core::Instant end) {
    auto response = std::move(begun.head);
    while (!begun.reader.is_done()) {
      const auto read = co_await read_some(*begun.transport, begun.reader, end);
      response.body += begun.reader.take().body;
      const bool is_too_large = limit && response.body.size() > *limit;
      if (read && !is_too_large) continue;
      begun.transport->close();
      if (!read) co_return std::unexpected(read.error());
      co_return fail(fmt::format("the answer is larger than {} KiB", *limit / 1024));
    }
    if (begun.reader.keeps_alive())
      give_back(self, {begun.transport, begun.identity});
    else
      begun.transport->close();
    co_return response;
  }

  static asio::awaitable<Result<Response>> send(Self self, Request request, core::Duration deadline);
  static asio::awaitable<Result<Opened>> open(Self self, Request request, core::Duration deadline);

  asio::any_io_executor reactor;
  asio::any_io_executor workers;
  std::shared_ptr<const Credentials> credentials;
  ClientOptions options;
  NameLookups lookups{most_lookups};
  std::string url;
  bool stopped = false;
  IdentityPtr identity;
  core::Instant identity_read{};
  bool read_hangs = false;  // one that was waited for in vain is still under way
  std::optional<Connection> idle;
  asio::steady_timer idle_timer;
  std::vector<std::weak_ptr<Transport>> connections;
};

struct LineStream::Impl {
  Begun begun;
  Lines lines;
  std::string url;

  static asio::awaitable<Result<std::optional<std::string>>> next(std::shared_ptr<Impl> self, core::Duration idle) {
    auto& [begun, lines, url] = *self;
    for (;;) {
      auto line = lines.next();
      if (!line) begun.transport->close();
      if (!line) co_return fail(line.error(), url);
      if (*line) co_return line;
      if (begun.reader.is_done()) {
        begun.transport->close();
        if (lines.has_rest()) co_return fail(url + ": the answer ends in the middle of a line");
        co_return std::nullopt;
      }
      const auto read = co_await read_some(*begun.transport, begun.reader, now() + idle);
      if (!read) begun.transport->close();
      if (!read) co_return fail(read.error(), url);
      lines.add(begun.reader.take().body);
    }
  }
};

asio::awaitable<Result<Response>> Client::Impl::send(Self self, Request request, core::Duration deadline) {
  const auto end = now() + deadline;
  const ResponseLimits limits{.body = self->options.largest_body};
  auto begun = co_await begin(self, request, limits, end);
  if (!begun) co_return fail(begun.error(), self->url);
  auto response = co_await finish(self, *begun, {}, end);
  if (!response) co_return fail(response.error(), self->url);
  co_return response;
}

asio::awaitable<Result<Opened>> Client::Impl::open(Self self, Request request, core::Duration deadline) {
  const auto end = now() + deadline;
  const ResponseLimits limits{.body = std::nullopt};
  auto begun = co_await begin(self, request, limits, end);
  if (!begun) co_return fail(begun.error(), self->url);

  Opened opened;
  if (!begun->head.is_success()) {
    constexpr std::size_t largest_refusal = std::size_t{1} << 20;
    auto response = co_await finish(self, *begun, largest_refusal, end);
    if (!response) co_return fail(response.error(), self->url);
    opened.response = *std::move(response);
    co_return opened;
  }
  opened.response = std::move(begun->head);
  Lines lines{self->options.longest_line};
  lines.add(std::exchange(opened.response.body, {}));
  opened.lines = std::make_unique<LineStream>(
      std::make_shared<LineStream::Impl>(LineStream::Impl{*std::move(begun), std::move(lines), self->url}));
  co_return opened;
}

LineStream::~LineStream() { close(); }

void LineStream::close() { impl_->begun.transport->close(); }

asio::awaitable<Result<std::optional<std::string>>> LineStream::next(core::Duration idle) {
  return Impl::next(impl_, idle);
}

Client::Client(asio::any_io_executor reactor, asio::any_io_executor workers, Credentials credentials,
               ClientOptions options)
    : impl_{std::make_shared<Impl>(std::move(reactor), std::move(workers), std::move(credentials), options)} {}

Client::~Client() { impl_->stop(); }

const std::string& Client::url() const { return impl_->url; }

asio::awaitable<Result<Response>> Client::send(Request request, core::Duration deadline) {
  return Impl::send(impl_, std::move(request), deadline);
}

asio::awaitable<Result<Opened>> Client::open(Request request, core::Duration deadline) {
  return Impl::open(impl_, std::move(request), deadline);
}

void Client::stop() { impl_->stop(); }

}  // namespace evictd::kube
