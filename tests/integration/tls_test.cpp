#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <evictd.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "callers.hpp"
#include "evictctl.hpp"
#include "kube/certificates.hpp"
#include "os/file_descriptor.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace integration::tls_test {

// Who may do what over TCP: api.tcp.

using namespace std::chrono_literals;
using evictd::test::Authority;
using integration::operator+;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;
const auto gibi_node = Testbed::Options{.node = {.memory_limit = 1024 * mebi}};
const auto without_runtime =
    Testbed::Options{.node = {.memory_limit = 1024 * mebi}, .containerd = {}, .start_containerd = false};

constexpr auto thresholds = "evictionHard: {memory.available: 300Mi}";
constexpr auto pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: main}]}\n";

/// A port that was free a moment ago.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

/// A connection with the beginning of a TLS handshake, and nothing after it.
evictd::os::FileDescriptor begin_handshake(int port) {
  evictd::os::FileDescriptor connection{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  REQUIRE(::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::send(connection.get(), "\x16\x03\x01", 3, MSG_NOSIGNAL) == 3);
  return connection;
}

/// What api.tcp needs, and clients with certificates. It lies in a testbed's directory.
class Tls {
 public:
  explicit Tls(const Testbed& testbed) : directory_(testbed.directory()) {
    renew_server(authority_);
    write("ca.pem", authority_.certificate());
  }

  /// Of the agent's configuration.
  [[nodiscard]] std::string section() const {
    return fmt::format(
        "api: {{tcp: {{address: \"127.0.0.1:{}\", certificateFile: {}, keyFile: {}, clientCaFile: {}, admins: [ops], "
        "readers: [watcher]}}}}\n",
        port_, path("server.pem"), path("server.key"), path("ca.pem"));
  }
  /// What evictctl is told to call with a certificate of this name.
  [[nodiscard]] std::vector<std::string> client(const std::string& name, const Authority& authority) const {
    const auto issued = authority.issue({.names = "", .common_name = name});
    write(name + ".pem", issued.certificate);
    write(name + ".key", issued.key);
    return {"--address", address(),           "--ca",  path("ca.pem"),
            "--cert",    path(name + ".pem"), "--key", path(name + ".key")};
  }
  [[nodiscard]] std::vector<std::string> client(const std::string& name) const { return client(name, authority_); }
  void renew_server(const Authority& authority) const {
    const auto issued = authority.issue();
    write("server.key", issued.key);
    write("server.pem", issued.certificate);
  }
  /// What clients trust, and the server.
  void trust(const Authority& authority) const { write("ca.pem", authority.certificate()); }

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string address() const { return fmt::format("127.0.0.1:{}", port_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (directory_ / name).native(); }

 private:
  void write(const std::string& name, const std::string& text) const { testbed::replace_file(directory_ / name, text); }

  std::filesystem::path directory_;
  Authority authority_;
  int port_ = free_port();
};

}  // namespace

TEST_CASE("over TLS the name in the client's certificate decides") {
  Testbed testbed{gibi_node};
  const Tls tls(testbed);
  Agent agent{testbed, {.thresholds = thresholds, .sections = tls.section()}};
  const auto file = (testbed.directory() / "pod.yaml").native();
  testbed::replace_file(file, pod);
  const std::vector<std::string> change{"admit", "-f", file, "--reserve"};

  CHECK(tcp_sockets(agent.process().pid(), true) == 1);
  CHECK(run_evictctl(testbed, tls.client("ops") + std::vector<std::string>{"status"}).code == 0);
  CHECK(run_evictctl(testbed, tls.client("ops") + change).code == 0);
  CHECK(wait_for_audit(agent, "CN=ops").audit().caller() == "CN=ops, 127.0.0.1, api.tcp");
  CHECK(run_evictctl(testbed, tls.client("watcher") + std::vector<std::string>{"status"}).code == 0);
  const auto reader = run_evictctl(testbed, tls.client("watcher") + change);
  CHECK(reader.code == 1);
  CHECK(reader.err == "evictctl: AdmitBatch with reserve is for administrators: CN=watcher is not in api.tcp.admins\n");
  CHECK(wait_for_audit(agent, "CN=watcher").audit().outcome().starts_with("PERMISSION_DENIED: "));

  for (const std::string command : {"status", "health", "events"}) {
    const auto guest = run_evictctl(testbed, tls.client("guest") + std::vector<std::string>{command});
    CHECK(guest.code == 1);
    CHECK(guest.err.find("CN=guest") != std::string::npos);
    CHECK(guest.err.find("may do nothing here: neither api.tcp.readers nor api.tcp.admins names it") !=
          std::string::npos);
  }
}

TEST_CASE("a connection without trust is refused on either side, and evictctl says which") {
  Testbed testbed{without_runtime};
  const Tls tls(testbed);
  Agent agent{testbed, {.thresholds = thresholds, .sections = tls.section(), .wait_until_ready = false}};
  const Authority other("another authority");
  const auto stranger = run_evictctl(testbed, tls.client("ops", other) + std::vector<std::string>{"status"});
  CHECK(stranger.code == 1);
  CHECK(stranger.err.starts_with("evictctl: no TLS with the agent at " + tls.address() +
                                 ": it closed the connection: this client's certificate (--cert)"));

  auto distrusts = tls.client("ops");
  testbed::replace_file(testbed.directory() / "other.pem", other.certificate());
  distrusts[3] = tls.path("other.pem");
  const auto distrusted = run_evictctl(testbed, distrusts + std::vector<std::string>{"status"});
  CHECK(distrusted.code == 1);
  CHECK(distrusted.err.starts_with("evictctl: no TLS with the agent at " + tls.address() +
                                   ": its certificate is not to be trusted"));

  // With no certificate at all, and without TLS: not by evictctl, which offers neither.
  const auto ca = testbed::read_file(tls.path("ca.pem"));
  for (const auto& credentials :
       {grpc::SslCredentials({.pem_root_certs = ca, .pem_private_key = "", .pem_cert_chain = ""}),
        grpc::InsecureChannelCredentials()}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + testbed::patient(20s));
    evictd::v1::NodeStatus status;
    const auto stub = evictd::v1::EvictionService::NewStub(grpc::CreateChannel(tls.address(), credentials));
    CHECK(stub->GetNodeStatus(&context, {}, &status).error_code() == grpc::StatusCode::UNAVAILABLE);
  }
  // A flood of such is no flood in the log.
  const auto log = agent.process().errors();
  CHECK(log.find("gRPC: ") == log.rfind("gRPC: "));
  CHECK(run_evictctl(testbed, tls.client("ops") + std::vector<std::string>{"status"}).code == 0);
}

TEST_CASE("certificates that are replaced on disk are used without a restart") {
  Testbed testbed{without_runtime};
  const Tls tls(testbed);
  Agent agent{testbed, {.thresholds = thresholds, .sections = tls.section(), .wait_until_ready = false}};
  const std::vector<std::string> status{"status"};
  CHECK(run_evictctl(testbed, tls.client("ops") + status).code == 0);

  // Everything changes hands: who signs the agent's certificate, and who signs clients'.
  const Authority next("the next authority");
  tls.renew_server(next);
  tls.trust(next);
  testbed::wait_until("the new certificates are in use", 60s,
                      [&] { return run_evictctl(testbed, tls.client("ops", next) + status).code == 0; });
  auto late = tls.client("watcher");  // of the authority before
  CHECK(run_evictctl(testbed, late + status).code == 1);
  CHECK(agent.process().running());
}

TEST_CASE("over TCP, whoever stands still is dropped: in the handshake after seconds, later by an unanswered ping") {
  Testbed testbed{without_runtime};
  const Tls tls(testbed);
  Agent agent{testbed, {.thresholds = thresholds, .sections = tls.section(), .wait_until_ready = false}};
  const auto connections = [&] { return tcp_sockets(agent.process().pid(), false); };
  std::vector<evictd::os::FileDescriptor> halting;
  for (int i = 0; i < 5; ++i) halting.push_back(begin_handshake(tls.port()));
  auto follower = testbed.spawn(std::vector<std::string>{testbed::evictctl_program()} + tls.client("watcher") +
                                std::vector<std::string>{"events", "-f"});
  testbed::wait_until("all are there", 60s, [&] { return connections() == halting.size() + 1; });
  testbed::wait_until("the handshakes are given up", 60s, [&] { return connections() == 1; });
  follower.signal(SIGSTOP);
  testbed::wait_until("the follower is dropped", 2min, [&] { return connections() == 0; });
  CHECK(run_evictctl(testbed, tls.client("ops") + std::vector<std::string>{"status"}).code == 0);
}

TEST_CASE("an address without TLS, or TLS without what it needs, ends evictd with 2 and one line") {
  const Testbed testbed{without_runtime};
  const Tls tls(testbed);
  const auto files = fmt::format("certificateFile: {}, keyFile: {}, clientCaFile: {}", tls.path("server.pem"),
                                 tls.path("server.key"), tls.path("ca.pem"));
  const auto check = [&](const std::string& tcp, const std::string& line) {
    const auto file = testbed.directory() / "wrong.yaml";
    const auto kubelet = testbed.directory() / "wrong-kubelet.yaml";
    testbed::replace_file(file, fmt::format("apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n"
                                            "runtimeDirectory: {}\napi: {{tcp: {{{}}}}}\n",
                                            testbed.directory().native(), tcp));
    testbed::replace_file(kubelet, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n");
    for (const std::string command : {"run", "check"}) {
      testbed::Process process({testbed::evictd_program(), command, "--config", file, "--kubelet-config", kubelet});
      CHECK(process.wait(30s) == 2);
      CHECK(process.errors() == "evictd: " + line + "\n");
      CHECK(process.output().empty());
    }
  };
  check("address: \"127.0.0.1:1\"", "api.tcp.certificateFile is missing: there is no api.tcp without mutual TLS");
  check("address: \"127.0.0.1\", " + files, "api.tcp.address: \"127.0.0.1\" has no port: HOST:PORT is wanted");
  check(files, "api.tcp.address is missing, and api.tcp.certificateFile is given");
  check("admins: [ops]", "api.tcp.address is missing, and api.tcp.admins or api.tcp.readers is given");
  check("address: \"127.0.0.1:1\", " + files,
        "api.tcp.admins and api.tcp.readers are empty: no client could do anything");
  check("address: \"127.0.0.1:1\", admins: [\"*\"], " + files,
        "api.tcp.admins: \"*\" is not a name: administrators are named one by one");
  testbed::replace_file(tls.path("server.key"), Authority().issue().key);
  check("address: \"127.0.0.1:1\", admins: [ops], " + files,
        fmt::format("api.tcp.keyFile: {} is not the key of the certificate in {}", tls.path("server.key"),
                    tls.path("server.pem")));
  std::filesystem::remove(tls.path("server.pem"));
  check("address: \"127.0.0.1:1\", admins: [ops], " + files,
        fmt::format("api.tcp.certificateFile: {}: cannot be read: No such file or directory", tls.path("server.pem")));
}

}  // namespace integration::tls_test
