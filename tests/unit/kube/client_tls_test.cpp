#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "fixture/hanging_file.hpp"
#include "fixture/tree.hpp"
#include "kube/api_server.hpp"
#include "kube/client.hpp"
#include "kube/reactor.hpp"
#include "os/now.hpp"

namespace evictd::kube::client_tls_test {

namespace asio = boost::asio;
namespace kube = evictd::kube;
using namespace evictd::test;
using evictd::fixture::error_of;
using evictd::fixture::file;
using evictd::fixture::HangingFile;
using evictd::fixture::Tree;
using evictd::fixture::value_of;
using namespace std::chrono_literals;

namespace {

/// An https server, by default with a certificate that is all right.
struct Fixture {
  Authority authority;
  ApiServer server;
  KubeReactor reactor;

  explicit Fixture(const Wanted& wanted = {}, bool demands_client = false)
      : server{ServerTls{.identity = authority.issue(wanted),
                         .client_authority = demands_client ? authority.certificate() : ""}} {
    server.otherwise(answers(200, "{}"));
  }

  kube::Credentials credentials() const { return credentials_for(server.url(), authority.certificate()); }
  /// With the client certificate that is in the tree.
  kube::Credentials credentials(const Tree& tree) const {
    auto credentials = this->credentials();
    credentials.client_certificate.file = tree.path("tls.crt");
    credentials.client_key.file = tree.path("tls.key");
    return credentials;
  }

  /// What a client of these credentials gets: "200", or its error without the URL.
  std::string outcome(const kube::Credentials& credentials) {
    kube::Client client{reactor.context.get_executor(), reactor.workers.get_executor(), credentials};
    const auto response = reactor.run(client.send(get("/x"), patience));
    if (response) return std::to_string(response->status);
    const auto& message = response.error().message;
    const auto prefix = client.url() + ": ";
    return message.starts_with(prefix) ? message.substr(prefix.size()) : "without its URL: " + message;
  }
};

}  // namespace

TEST_CASE("a server whose certificate is all right is spoken to") {
  Fixture f;
  CHECK(f.outcome(f.credentials()) == "200");
  CHECK(f.outcome(credentials_for(f.server.url("localhost"), f.authority.certificate())) == "200");

  SUBCASE("with others in the authorities' file") {
    auto credentials = f.credentials();
    credentials.authorities.text = Authority{"other"}.certificate() + "\n# the one\n" + f.authority.certificate();
    CHECK(f.outcome(credentials) == "200");
  }
  SUBCASE("the certificate itself may be what is trusted") {
    auto credentials = f.credentials();
    const auto identity = f.authority.issue();
    f.server.present(identity);
    credentials.authorities.text = identity.certificate;
    CHECK(f.outcome(credentials) == "200");
  }
}

TEST_CASE("a certificate made out to somebody else is refused") {
  Fixture f{{.names = "DNS:api.example.org,DNS:*.cluster.local,IP:10.0.0.1"}};
  CHECK(f.outcome(f.credentials()) == "certificate is not valid for 127.0.0.1");
  CHECK(f.outcome(credentials_for(f.server.url("localhost"), f.authority.certificate())) ==
        "certificate is not valid for localhost");
  CHECK(f.server.asked().empty());

  auto credentials = f.credentials();
  credentials.tls_server_name = "api.example.org";
  CHECK(f.outcome(credentials) == "200");
  credentials.tls_server_name = "node.cluster.local";
  CHECK(f.outcome(credentials) == "200");
  credentials.tls_server_name = "10.0.0.1";
  CHECK(f.outcome(credentials) == "200");
  credentials.tls_server_name = "a.node.cluster.local";
  CHECK(f.outcome(credentials) == "certificate is not valid for a.node.cluster.local");
  credentials.tls_server_name = "10.0.0.2";
  CHECK(f.outcome(credentials) == "certificate is not valid for 10.0.0.2");
}

TEST_CASE("a certificate out of its time is refused") {
  Fixture expired{{.valid_from = -2h, .valid_until = -1h}};
  CHECK(expired.outcome(expired.credentials()) == "certificate has expired");
  Fixture early{{.valid_from = 1h, .valid_until = 2h}};
  CHECK(early.outcome(early.credentials()) == "certificate is not valid yet: is this machine's clock right?");
  CHECK(expired.server.asked().empty());
  CHECK(early.server.asked().empty());
}

TEST_CASE("a certificate of another authority is refused, also one of the same name") {
  Fixture f;
  auto credentials = f.credentials();
  credentials.authorities.text = Authority{"other"}.certificate();
  CHECK(contains(f.outcome(credentials), "certificate is signed by no authority that was given ("));
  credentials.authorities.text = Authority{}.certificate();
  CHECK(contains(f.outcome(credentials), "certificate is signed by no authority that was given ("));
  credentials.authorities = {};  // the system's
  CHECK(contains(f.outcome(credentials), "certificate is signed by no authority that was given ("));
  CHECK(f.server.asked().empty());
}

TEST_CASE("an authorities' file without certificates is named") {
  Fixture f;
  const Tree tree{file("ca.crt", "nothing\n")};
  auto credentials = f.credentials();
  credentials.authorities.file = tree.path("ca.crt");
  CHECK(f.outcome(credentials) == tree.path("ca.crt").string() + ": holds no PEM certificates");
  credentials.authorities.file = tree.path("gone");
  CHECK(f.outcome(credentials) == tree.path("gone").string() + ": cannot be read: No such file or directory");
}

TEST_CASE("TLS older than 1.2 is refused") {
  const Authority authority;
  ApiServer server{ServerTls{.identity = authority.issue(), .only_old = true}};
  KubeReactor reactor;
  kube::Client client{reactor.context.get_executor(), reactor.workers.get_executor(),
                      credentials_for(server.url(), authority.certificate())};
  const auto error = error_of(reactor.run(client.send(get("/x"), patience)));
  CHECK(contains(error, server.url() + ": TLS handshake: "));
}

TEST_CASE("a server that takes the connection and does not shake hands costs the deadline") {
  KubeReactor reactor;
  asio::io_context other;
  asio::ip::tcp::acceptor silent{other, {asio::ip::make_address("127.0.0.1"), 0}};  // nobody accepts
  const auto url = "https://127.0.0.1:" + std::to_string(silent.local_endpoint().port());
  kube::Client client{reactor.context.get_executor(), reactor.workers.get_executor(),
                      credentials_for(url, Authority{}.certificate())};
  CHECK(error_of(reactor.run(client.send(get("/x"), 2s))) == url + ": TLS handshake: no answer in time");
}

TEST_CASE("a server that speaks no TLS is no server") {
  ApiServer server;
  KubeReactor reactor;
  const auto url = "https" + server.url().substr(4);
  kube::Client client{reactor.context.get_executor(), reactor.workers.get_executor(),
                      credentials_for(url, Authority{}.certificate())};
  CHECK(contains(error_of(reactor.run(client.send(get("/x"), patience))), url + ": TLS handshake: "));
  CHECK(server.asked().empty());
}

TEST_CASE("a server may demand a client certificate") {
  Fixture f{{}, true};
  auto credentials = f.credentials();
  CHECK(f.outcome(credentials) == "the server demands a client certificate");

  const auto identity = f.authority.issue();
  credentials.client_certificate.text = identity.certificate;
  credentials.client_key.text = identity.key;
  CHECK(f.outcome(credentials) == "200");

  credentials.client_key.text = f.authority.issue().key;
  CHECK(contains(f.outcome(credentials),
                 "the client key: holds no unencrypted PEM key that fits the client certificate ("));
  credentials.client_key.text = "nothing";
  CHECK(contains(f.outcome(credentials), "the client key: holds no unencrypted PEM key that fits"));
  credentials.client_certificate.text = "nothing";
  CHECK(f.outcome(credentials) == "the client certificate: holds no PEM certificate");
}

TEST_CASE("a client certificate that is renewed on the disk is shown at the next connection") {
  Fixture f{{}, true};
  const auto old = Authority{"retired"}.issue();
  const auto renewed = f.authority.issue();
  const Tree tree{{file("tls.crt", old.certificate), file("tls.key", old.key)}};
  kube::Client client{f.reactor.context.get_executor(), f.reactor.workers.get_executor(), f.credentials(tree)};
  CHECK_FALSE(f.reactor.run(client.send(get("/x"), patience)).has_value());

  tree.write("tls.crt", renewed.certificate);
  tree.write("tls.key", renewed.key);
  CHECK(value_of(f.reactor.run(client.send(get("/x"), patience))).status == 200);

  SUBCASE("and while it is being written, the last one still counts") {
    f.server.then(answers(200, "{}", {{"Connection", "close"}}));
    CHECK(f.reactor.run(client.send(get("/x"), patience)).has_value());
    tree.write("tls.crt", "-----BEGIN CERT");
    CHECK(value_of(f.reactor.run(client.send(get("/x"), patience))).status == 200);
    CHECK(f.server.connections() == 3);
  }
}

TEST_CASE("a connection that was opened with a certificate that has been renewed since is not used again") {
  Fixture f{{}, true};
  const auto old = f.authority.issue();
  const auto renewed = f.authority.issue();
  const Tree tree{{file("tls.crt", old.certificate), file("tls.key", old.key)}};
  kube::Client client{f.reactor.context.get_executor(), f.reactor.workers.get_executor(), f.credentials(tree)};
  const auto feed = std::make_shared<Feed>();
  f.server.then(streams(feed));
  std::optional<int> first;
  asio::co_spawn(f.reactor.context, client.send(get("/first"), patience),
                 [&](std::exception_ptr, auto response) { first = value_of(std::move(response)).status; });
  REQUIRE(f.reactor.run_until([&] { return f.server.asked().size() == 1; }));

  tree.write("tls.crt", renewed.certificate);
  tree.write("tls.key", renewed.key);
  f.server.then(answers(200, "{}", {{"Connection", "close"}}));
  CHECK(value_of(f.reactor.run(client.send(get("/second"), patience))).status == 200);
  feed->end();
  REQUIRE(f.reactor.run_until([&] { return first.has_value(); }));

  // An API server looks at each request whether the connection's certificate has expired.
  f.server.otherwise([](Exchange& exchange) {
    if (exchange.asked().connection == 1) return exchange.refuse(401, "Unauthorized", "Unauthorized");
    exchange.answer(200, "{}");
  });
  CHECK(value_of(f.reactor.run(client.send(get("/third"), patience))).status == 200);
  CHECK(f.server.connections() == 3);
}

namespace {

/// A server that knows one token, and a client with a token file.
struct TokenFixture : Fixture {
  std::atomic<const char*> valid = "first";
  Tree tree{file("token", "first\n")};
  std::optional<kube::Client> client;

  explicit TokenFixture(kube::ClientOptions options = {}) {
    server.otherwise([this](Exchange& exchange) {
      if (exchange.asked().header("authorization") == std::string("Bearer ") + valid.load())
        return exchange.answer(200, "{}");
      exchange.refuse(401, "Unauthorized", "Unauthorized");
    });
    auto credentials = this->credentials();
    credentials.token.file = tree.path("token");
    client.emplace(reactor.context.get_executor(), reactor.workers.get_executor(), credentials, options);
  }

  int status() { return value_of(reactor.run(client->send(get("/x"), patience))).status; }
  /// Until what was begun before is through.
  void finish_reads() {
    bool through = false;
    asio::post(reactor.workers, [&] { asio::post(reactor.context, [&] { through = true; }); });
    REQUIRE(reactor.run_until([&] { return through; }));
  }
};

}  // namespace

TEST_CASE("an expired token is read again at once, and the request sent again with the new one") {
  TokenFixture f;
  CHECK(f.status() == 200);
  f.valid = "second";
  f.tree.write("token", "second");
  CHECK(f.status() == 200);
  CHECK(f.server.asked().size() == 3);
  CHECK(f.status() == 200);
  CHECK(f.server.asked().size() == 4);
}

TEST_CASE("a token that is refused and has not changed is not tried twice") {
  TokenFixture f;
  f.valid = "second";
  CHECK(f.status() == 401);
  CHECK(f.server.asked().size() == 1);
  f.tree.write("token", "third");
  CHECK(f.status() == 401);
  CHECK(f.server.asked().size() == 3);

  SUBCASE("nor one that is gone") {
    f.tree.remove("token");
    CHECK(f.status() == 401);
    CHECK(f.server.asked().size() == 4);
  }
}

TEST_CASE("a token that has aged is read again on the same connection") {
  TokenFixture f{{.token_age = 0s}};
  CHECK(f.status() == 200);
  f.valid = "second";
  f.tree.write("token", "second");
  CHECK(f.status() == 200);
  CHECK(f.server.asked().size() == 2);
  CHECK(f.server.connections() == 1);

  SUBCASE("one that cannot be read leaves the last in use") {
    f.tree.remove("token");
    CHECK(f.status() == 200);
  }
  SUBCASE("and so does one that is none") {
    f.tree.write("token", "two words");
    CHECK(f.status() == 200);
  }
}

TEST_CASE("a token whose disk hangs leaves the last in use, takes its time once, and is read once the disk answers") {
  TokenFixture f{{.token_age = 0s}};
  CHECK(f.status() == 200);
  HangingFile token{f.tree.path("token")};
  const auto begun = evictd::os::now();
  for (int i = 0; i < 20; ++i) CHECK(value_of(f.reactor.run(f.client->send(get("/x"), 20s))).status == 200);
  CHECK(evictd::os::now() - begun < 15s);
  CHECK(f.server.connections() == 1);
  // As a new connection.
  f.server.then(answers(200, "{}", {{"Connection", "close"}}));
  CHECK(f.status() == 200);
  CHECK(f.status() == 200);
  CHECK(f.server.connections() == 2);

  f.valid = "second";
  token.release();
  f.tree.write("token", "second");
  f.finish_reads();
  CHECK(f.status() == 200);
}

TEST_CASE("where the disk hangs from the start nothing is sent until it answers") {
  TokenFixture f;
  HangingFile token{f.tree.path("token")};
  for (int i = 0; i < 3; ++i)
    CHECK(error_of(f.reactor.run(f.client->send(get("/x"), 50ms))) ==
          f.server.url() + ": the credentials' files could not be read in time");
  token.release();
  f.tree.write("token", "first");
  f.finish_reads();
  CHECK(f.status() == 200);
}

TEST_CASE("a token file must hold a token from the start") {
  TokenFixture f;
  const auto error = [&](const char* content) {
    f.tree.write("token", content);
    return error_of(f.reactor.run(f.client->send(get("/x"), patience)));
  };
  const auto where = f.server.url() + ": " + f.tree.path("token").string();
  CHECK(error(" \n") == where + ": holds no token");
  CHECK(error("a\r\nHost: evil") == where + ": holds something else than a token");
  CHECK(f.server.connections() == 0);
}

}  // namespace evictd::kube::client_tls_test
