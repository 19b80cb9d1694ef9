#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "api_client.hpp"
#include "certificates.hpp"
#include "testbed/process.hpp"
#include "testbed/work_directory.hpp"

namespace kubernetes {

/// The name of the one node, and of who may act for it.
inline constexpr auto node_name = "evictd-node";

/// An etcd and a kube-apiserver of the test's own, on ports of the loopback, with RBAC. There are no controllers: who
/// needs a pod of a DaemonSet creates it. All of it ends and vanishes with this object.
class ControlPlane {
 public:
  /// Returns when the API server is ready.
  ControlPlane();

  /// Clients see a server that is gone, as in an outage; etcd stays, and with it all objects.
  void stop_api_server();
  /// On the same port; returns when it is ready.
  void start_api_server();

  /// "https://127.0.0.1:1234"
  [[nodiscard]] std::string server() const;
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const Authority& authority() const { return authority_; }
  /// Of the group system:masters, which may do everything.
  [[nodiscard]] const ApiClient& admin() const { return admin_; }
  /// Of the group system:nodes, for a kubelet of that name.
  [[nodiscard]] const std::string& node_token() const { return node_token_; }
  /// A token that the API server signed for an existing ServiceAccount; `seconds` at least 600, says Kubernetes.
  [[nodiscard]] std::string service_account_token(const std::string& name_space, const std::string& name,
                                                  int seconds = 3600) const;
  [[nodiscard]] ApiClient client(const std::string& token) const;
  /// A file that names server, authority and token.
  [[nodiscard]] std::filesystem::path write_kubeconfig(const std::string& name, const std::string& token) const;

  [[nodiscard]] const std::filesystem::path& directory() const { return work_.path(); }
  /// What the API server said, over all its starts.
  [[nodiscard]] std::filesystem::path log() const { return directory() / "kube-apiserver.log"; }

 private:
  void start_etcd();
  void write_tokens() const;
  void let_nodes_work() const;

  testbed::WorkDirectory work_;
  Authority authority_;
  KeyPair serving_;
  std::uint16_t etcd_port_;
  std::uint16_t port_;
  std::string admin_token_;
  std::string node_token_;
  ApiClient admin_;
  std::optional<testbed::Process> etcd_;
  std::optional<testbed::Process> api_server_;
};

}  // namespace kubernetes
