#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <list>
#include <memory>
#include <string>

#include "app/configuration.hpp"
#include "async/deadline_thread.hpp"
#include "config/agent_configuration.hpp"
#include "core/error.hpp"
#include "kube/credentials.hpp"
#include "pods/catalog.hpp"
#include "pods/manifest_source.hpp"
#include "pods/trust.hpp"

namespace evictd::kube {
class Client;
class NodeMirror;
}  // namespace evictd::kube

namespace evictd::app {

/// podSources.manifests, or the kubelet's staticPodPath; empty: there are none.
[[nodiscard]] std::string manifest_directory(const Configuration& configuration);

/// How to reach the API server, as `kubernetes` says.
[[nodiscard]] Result<kube::Credentials> api_server_credentials(const config::KubernetesSettings& settings);

/// Puts together where pods' specs come from, as configured: one line a source.
class PodSources {
 public:
  /// Error: a kubeconfig, a service account or a URL that is not good. Files that change with time, such as tokens, are
  /// read later.
  [[nodiscard]] static Result<std::unique_ptr<PodSources>> make(const boost::asio::any_io_executor& reactor,
                                                                const Configuration& configuration);
  ~PodSources();

  [[nodiscard]] pods::Catalog& catalog() { return catalog_; }
  /// This node as the API server has it, still to be started; null unless podSources.apiServer.
  [[nodiscard]] kube::NodeMirror* node() const { return node_.get(); }
  /// inotify saw something in the directory of manifests.
  void manifests_changed();

 private:
  PodSources(std::string node_name, pods::TrustedNamespaces trusted);
  template <class Source, class... Args>
  Source& add(Args&&... args);

  /// Parses what servers answer. Its thread ends before all below, and it goes after: the sources' strands are its own.
  async::DeadlineThread answers_{"reading what the API server or the kubelet sent"};
  // Files that hang hold up neither what servers say nor other files.
  std::list<async::DeadlineThread> credentials_;
  async::DeadlineThread files_{"reading the manifests"};
  std::unique_ptr<kube::Client> api_server_;
  std::unique_ptr<kube::NodeMirror> node_;
  pods::Catalog catalog_;
  pods::ManifestSource* manifests_ = nullptr;  // in the catalog
};

/// Whether they can be made, for those who only check a configuration.
[[nodiscard]] Result<void> check_pod_sources(const Configuration& configuration);

}  // namespace evictd::app
