#include "control_plane.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>

#include "programs.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace kubernetes {

using namespace std::chrono_literals;

ControlPlane::ControlPlane()
    : authority_{work_.path()},
      serving_{authority_.issue_server("kube-apiserver")},
      etcd_port_{free_port()},
      port_{free_port()},
      admin_token_{"token-of-the-admin"},
      node_token_{"token-of-the-node"},
      admin_{client(admin_token_)} {
  write_tokens();
  start_etcd();
  start_api_server();
  let_nodes_work();
}

void ControlPlane::write_tokens() const {
  // token, user, uid, groups
  testbed::replace_file(directory() / "tokens.csv",
                        fmt::format("{},admin,1,\"system:masters\"\n{},system:node:{},2,\"system:nodes\"\n",
                                    admin_token_, node_token_, node_name));
}

void ControlPlane::start_etcd() {
  const auto peers = fmt::format("http://127.0.0.1:{}", free_port());
  const auto clients = fmt::format("http://127.0.0.1:{}", etcd_port_);
  const auto log = directory() / "etcd.log";
  etcd_.emplace(work_.spawn({"etcd", "--name", "test", "--data-dir", directory() / "etcd", "--listen-client-urls",
                             clients, "--advertise-client-urls", clients, "--listen-peer-urls", peers,
                             "--initial-advertise-peer-urls", peers, "--initial-cluster", "test=" + peers},
                            {.output = log, .errors = log}));
}

void ControlPlane::start_api_server() {
  const std::string directory = this->directory();
  // Without controllers nobody makes the ServiceAccounts that the plugin of this name asks for.
  api_server_.emplace(work_.spawn(
      {program("kube-apiserver"), fmt::format("--etcd-servers=http://127.0.0.1:{}", etcd_port_),
       "--bind-address=127.0.0.1", fmt::format("--secure-port={}", port_), "--endpoint-reconciler-type=none",
       "--tls-cert-file=" + serving_.certificate.native(), "--tls-private-key-file=" + serving_.key.native(),
       "--client-ca-file=" + authority_.certificate().native(), "--token-auth-file=" + directory + "/tokens.csv",
       "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
       "--service-account-issuer=https://evictd.test", "--service-account-signing-key-file=" + serving_.key.native(),
       "--service-account-key-file=" + serving_.certificate.native(), "--service-cluster-ip-range=10.0.0.0/24"},
      {.output = log(), .errors = log()}));
  testbed::wait_until("the API server is ready; its log is in " + log().native(), 180s, [&] {
    if (!api_server_->running()) testbed::fail("kube-apiserver ended:\n" + testbed::read_file(log()));
    const auto ready = admin_.try_send({.path = "/readyz"});
    return ready && ready->status == 200;
  });
  testbed::wait_until("the namespace default is there", 60s,
                      [&] { return admin_.get("/api/v1/namespaces/default").status == 200; });
}

void ControlPlane::stop_api_server() {
  api_server_->signal(SIGTERM);
  // It waits for open watches; a client sees no difference between an end and a kill.
  if (!api_server_->wait(2s)) api_server_->kill();
}

/// RBAC alone, without the node authorizer, gives kubelets nothing until somebody binds their role.
void ControlPlane::let_nodes_work() const {
  expect_success(admin_.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:node}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:nodes}]
)"));
}

std::string ControlPlane::server() const { return fmt::format("https://127.0.0.1:{}", port_); }

ApiClient ControlPlane::client(const std::string& token) const {
  return {server(), authority_.certificate(), token, directory()};
}

std::string ControlPlane::service_account_token(const std::string& name_space, const std::string& name,
                                                int seconds) const {
  const auto answer = admin_.create(
      fmt::format("/api/v1/namespaces/{}/serviceaccounts/{}/token", name_space, name),
      fmt::format("{{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {{expirationSeconds: {}}}}}",
                  seconds));
  return expect_success(answer).at("/status/token");
}

std::filesystem::path ControlPlane::write_kubeconfig(const std::string& name, const std::string& token) const {
  auto file = directory() / (name + ".kubeconfig");
  testbed::replace_file(file, fmt::format(R"(apiVersion: v1
kind: Config
clusters: [{{name: test, cluster: {{server: "{}", certificate-authority: "{}"}}}}]
users: [{{name: test, user: {{token: "{}"}}}}]
contexts: [{{name: test, context: {{cluster: test, user: test}}}}]
current-context: test
)",
                                          server(), authority_.certificate().native(), token));
  return file;
}

}  // namespace kubernetes
