#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <mutex>

#include "api/raw_call.hpp"
#include "api/running_server.hpp"
#include "kube/certificates.hpp"

namespace evictd::api::roles_test {
namespace {

using test::Client;
using test::Reactor;
using test::TemporaryDirectory;
using test::Wanted;

enum class Handled : bool { none, all };

/// Every pod may run.
class AdmitAll final : public AdmissionTask {
 public:
  explicit AdmitAll(AdmissionRequestsPtr pods) : pods_(std::move(pods)) {}
  Result<std::vector<v1::AdmitResponse>> decide_some() override {
    std::vector<v1::AdmitResponse> answers(pods_->size());
    for (auto& answer : answers) answer.set_admitted(true);
    return answers;
  }
  void when_room(std::function<void()>) override {}

 private:
  AdmissionRequestsPtr pods_;
};

/// A server with every way in, that keeps what it is told of changes.
class Guarded final : events::StatusSource, Admitter, ThresholdHandler, Auditor {
 public:
  explicit Guarded(Handled handled = Handled::all) : log_(reactor_.context.get_executor()) {
    write("server.pem", server_.certificate);
    write("server.key", server_.key);
    write("clients.pem", authority_.certificate());
    for (port_ = 21'000; port_ < 60'000 && !server; port_ += 89) start(handled);
    REQUIRE_MESSAGE(server, error_);
    port_ -= 89;
  }
  ~Guarded() {
    reactor_.run([this] { server.reset(); });
  }

  [[nodiscard]] std::vector<v1::Audit> audits() {
    const std::lock_guard lock(mutex_);
    return audits_;
  }
  /// A client with a certificate of this name; a null authority: with none.
  [[nodiscard]] std::shared_ptr<grpc::Channel> by_tls(const std::string& name, const test::Authority* authority) {
    grpc::SslCredentialsOptions options{
        .pem_root_certs = authority_.certificate(), .pem_private_key = "", .pem_cert_chain = ""};
    if (authority != nullptr) {
      const auto issued = authority->issue({.names = "", .common_name = name});
      options.pem_private_key = issued.key;
      options.pem_cert_chain = issued.certificate;
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port_), grpc::SslCredentials(options), arguments);
  }
  [[nodiscard]] std::shared_ptr<grpc::Channel> by_tls(const std::string& name) { return by_tls(name, &authority_); }

 private:
  void write(const std::string& name, const std::string& text) const { std::ofstream(directory_ / name) << text; }

  v1::NodeStatus status() override { return {}; }
  [[nodiscard]] std::int64_t memory_capacity() const override { return std::int64_t{1} << 30; }
  std::unique_ptr<AdmissionTask> admit(AdmissionRequestsPtr pods, bool /*reserve*/) override {
    return std::make_unique<AdmitAll>(std::move(pods));
  }
  v1::ThresholdSet thresholds() override { return {}; }
  void update_thresholds(const v1::UpdateThresholdsRequest& request, UpdateDone done) override {
    if (request.changes_size() == 0) return done(std::unexpected(Refusal{RefusalCode::Aborted, "changed meanwhile"}));
    v1::UpdateThresholdsResponse response;
    response.add_changes("memory.available: 100Mi -> 500Mi");
    done(response);
  }
  Answer<v1::SuggestThresholdsResponse> suggest_thresholds() override { return v1::SuggestThresholdsResponse{}; }
  void audit(const v1::Audit& audit) override {
    const std::lock_guard lock(mutex_);
    audits_.push_back(audit);
  }

  void start(Handled handled) {
    Handlers handlers{.status = *this, .auditor = this};
    if (handled == Handled::all) {
      handlers.admitter = this;
      handlers.thresholds = this;
    }
    ServerOptions options{.socket = socket, .admin_socket = admin_socket};
    options.tcp = TcpOptions{.address = {"127.0.0.1", std::to_string(port_)},
                             .tls = {.certificate_file = directory_ / "server.pem",
                                     .key_file = directory_ / "server.key",
                                     .client_ca_file = directory_ / "clients.pem",
                                     .admins = {"ops"},
                                     .readers = {"watcher"}}};
    auto attempt = std::make_unique<Server>(std::move(options), log_, handlers);
    const auto started = reactor_.run([&] { return attempt->start(); });
    if (started)
      server = std::move(attempt);
    else
      error_ = started.error().message;
  }

  TemporaryDirectory directory_;
  test::Authority authority_;
  test::Issued server_ = authority_.issue();

 public:
  const std::string socket = directory_ / "evictd.sock";
  const std::string admin_socket = directory_ / "admin.sock";

 private:
  std::mutex mutex_;
  std::vector<v1::Audit> audits_;
  int port_ = 0;
  std::string error_;
  Reactor reactor_;
  events::EventLog log_;

 public:
  std::unique_ptr<Server> server;
};

constexpr auto pod = "metadata: {name: web}\nspec: {containers: [{name: main}]}\n";

/// One call on a channel.
class Asking {
 public:
  explicit Asking(const std::shared_ptr<grpc::Channel>& channel) : stub_(v1::EvictionService::NewStub(channel)) {}

  [[nodiscard]] grpc::Status status() const {
    v1::NodeStatus reply;
    return call(&v1::EvictionService::Stub::GetNodeStatus, {}, reply);
  }
  [[nodiscard]] grpc::Status admit(bool reserve, const std::string& text = pod) const {
    v1::AdmitRequest request;
    request.set_pod(text);
    request.set_reserve(reserve);
    v1::AdmitResponse reply;
    return call(&v1::EvictionService::Stub::Admit, request, reply);
  }
  [[nodiscard]] grpc::Status update(bool validate_only = false, bool empty = false) const {
    v1::UpdateThresholdsRequest request;
    request.set_validate_only(validate_only);
    if (!empty) request.add_changes()->set_signal("memory.available");
    v1::UpdateThresholdsResponse reply;
    return call(&v1::EvictionService::Stub::UpdateThresholds, request, reply);
  }
  [[nodiscard]] grpc::Status update_many(std::size_t changes, bool validate_only) const {
    v1::UpdateThresholdsRequest request;
    request.set_validate_only(validate_only);
    while (static_cast<std::size_t>(request.changes_size()) < changes) request.add_changes()->set_signal("x");
    v1::UpdateThresholdsResponse reply;
    return call(&v1::EvictionService::Stub::UpdateThresholds, request, reply);
  }
  [[nodiscard]] grpc::Status admit_many(std::size_t texts) const {
    v1::AdmitBatchRequest request;
    while (static_cast<std::size_t>(request.pods_size()) < texts) request.add_pods(pod);
    request.set_reserve(true);
    v1::AdmitBatchResponse reply;
    return call(&v1::EvictionService::Stub::AdmitBatch, request, reply);
  }
  [[nodiscard]] grpc::Status events() const { return test::Subscriber(*stub_, test::kept_events()).finish(); }

 private:
  template <class Request, class Reply>
  grpc::Status call(grpc::Status (v1::EvictionService::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                    const Request& request, Reply& reply) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + test::patience);
    return (stub_.get()->*method)(&context, request, &reply);
  }

  std::unique_ptr<v1::EvictionService::Stub> stub_;
};

std::string own_name(const std::string& key) {
  const auto uid = ::geteuid();
  return uid == 0 ? "uid 0 (root), pid " + std::to_string(::getpid()) + ", " + key : key;
}

TEST_CASE("on the readers' socket everybody looks and nobody changes") {
  Guarded guarded;
  const Client client(guarded.socket);
  const Asking asking(client.channel);
  CHECK(asking.status().ok());
  CHECK(asking.events().ok());
  CHECK(asking.admit(false).ok());
  CHECK(asking.update(true).ok());  // only to see what would come of it
  CHECK(guarded.audits().empty());

  const auto update = asking.update();
  CHECK(update.error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(update.error_message() ==
        "UpdateThresholds is for administrators: use admin.sock (" + guarded.admin_socket + ")");
  const auto admit = asking.admit(true);
  CHECK(admit.error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(admit.error_message().starts_with("Admit with reserve is for administrators"));
  const auto audits = guarded.audits();
  REQUIRE(audits.size() == 2);
  CHECK(audits[0].call() == "UpdateThresholds");
  CHECK(audits[0].outcome() == "PERMISSION_DENIED: " + update.error_message());
  CHECK(audits[1].call() == "Admit");
  CHECK(audits[1].before_size() == 0);  // its pods are not even read
  for (const auto& audit : audits) CHECK(audit.caller().ends_with(own_name("evictd.sock")));
}

TEST_CASE("on the administrators' socket changes are made, and each is told once with who and what") {
  Guarded guarded;
  const Client client(guarded.admin_socket);
  const Asking asking(client.channel);
  CHECK(asking.status().ok());
  CHECK(asking.update(true).ok());
  CHECK(guarded.audits().empty());
  CHECK(asking.update().ok());
  CHECK(asking.update(false, true).error_code() == grpc::StatusCode::ABORTED);
  CHECK(asking.admit(true).ok());
  CHECK(asking.admit(true, "no pod").error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  const auto audits = guarded.audits();
  REQUIRE(audits.size() == 4);
  CHECK(audits[0].outcome() == "done");
  CHECK(audits[0].before(0) == "memory.available: 100Mi");
  CHECK(audits[0].after(0) == "memory.available: 500Mi");
  CHECK(audits[1].outcome() == "ABORTED: changed meanwhile");
  CHECK(audits[2].outcome() == "done");
  CHECK(audits[2].after(0) == "default/web: admitted");
  CHECK(audits[3].outcome().starts_with("INVALID_ARGUMENT: "));
  for (const auto& audit : audits) CHECK(audit.caller().ends_with(own_name("admin.sock")));
}

TEST_CASE("a call of too many parts is refused before it is looked at, and nobody else is told") {
  Guarded guarded;
  const Client reader(guarded.socket);
  const Client admin(guarded.admin_socket);
  CHECK(Asking(reader.channel).update_many(64, true).ok());
  const auto refused = [](const grpc::Status& status) {
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  CHECK(refused(Asking(reader.channel).update_many(65, true)) ==
        "changes: there are 65, and at most 64 are taken at once");
  CHECK(refused(Asking(admin.channel).update_many(65, false)) ==
        "changes: there are 65, and at most 64 are taken at once");
  CHECK(Asking(reader.channel).update_many(65, false).error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(refused(Asking(admin.channel).admit_many(257)) == "pods: there are 257, and at most 256 are taken at once");
  REQUIRE(guarded.audits().size() == 1);
  CHECK(guarded.audits().front().outcome().starts_with("PERMISSION_DENIED"));
  CHECK(Asking(admin.channel).admit_many(256).ok());
  CHECK(guarded.audits().size() == 2);
}

TEST_CASE("a role is looked at before anything else") {
  Guarded guarded{Handled::none};
  const Client reader(guarded.socket);
  const Client admin(guarded.admin_socket);
  CHECK(Asking(reader.channel).update().error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(Asking(admin.channel).update().error_code() == grpc::StatusCode::UNIMPLEMENTED);
  CHECK(Asking(reader.channel).admit(true, "no pod").error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(Asking(reader.channel).update(true).error_code() == grpc::StatusCode::UNIMPLEMENTED);
}

TEST_CASE("over TLS the certificate's name decides") {
  Guarded guarded;
  const auto admin = guarded.by_tls("ops");
  CHECK(Asking(admin).status().ok());
  CHECK(Asking(admin).update().ok());
  const auto reader = guarded.by_tls("watcher");
  CHECK(Asking(reader).status().ok());
  CHECK(Asking(reader).events().ok());
  const auto refused = Asking(reader).update();
  CHECK(refused.error_code() == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(refused.error_message() == "UpdateThresholds is for administrators: CN=watcher is not in api.tcp.admins");
  const auto audits = guarded.audits();
  REQUIRE(audits.size() == 2);
  CHECK(audits[0].caller() == "CN=ops, 127.0.0.1, api.tcp");
  CHECK(audits[1].caller() == "CN=watcher, 127.0.0.1, api.tcp");
}

TEST_CASE("a certificate that no list names opens nothing, health and reflection included") {
  Guarded guarded;
  const auto channel = guarded.by_tls("guest");
  const Asking asking(channel);
  for (const auto& status : {asking.status(), asking.events(), asking.admit(false), asking.update()}) {
    CHECK(status.error_code() == grpc::StatusCode::PERMISSION_DENIED);
    CHECK(status.error_message() ==
          "CN=guest, 127.0.0.1, api.tcp may do nothing here: neither api.tcp.readers nor api.tcp.admins names it");
  }
  CHECK(guarded.audits().size() == 1);
  for (const std::string method : {"/grpc.health.v1.Health/Check", "/no.such.Service/Call"}) {
    const auto status = test::raw_call(channel, method, "").status;
    CHECK(status.error_code() == grpc::StatusCode::PERMISSION_DENIED);
    CHECK(status.error_message() ==
          "CN=guest may do nothing here: neither api.tcp.readers nor api.tcp.admins names it");
  }
  CHECK(test::raw_call(guarded.by_tls("watcher"), "/grpc.health.v1.Health/Check", "").status.ok());
}

TEST_CASE("without a certificate, or with another authority's, there is no connection") {
  Guarded guarded;
  const test::Authority other;
  CHECK(Asking(guarded.by_tls("", nullptr)).status().error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(Asking(guarded.by_tls("ops", &other)).status().error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(Asking(guarded.by_tls("ops")).status().ok());
}

}  // namespace
}  // namespace evictd::api::roles_test
