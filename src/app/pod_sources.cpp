#include "app/pod_sources.hpp"

#include <boost/asio/io_context.hpp>
#include <utility>

#include "config/agent_configuration.hpp"
#include "host/node_name.hpp"
#include "kube/client.hpp"
#include "kube/node_mirror.hpp"
#include "os/log.hpp"
#include "pods/api_server_source.hpp"
#include "pods/kubelet_source.hpp"
#include "pods/trust.hpp"

namespace evictd::app {

namespace asio = boost::asio;

std::string manifest_directory(const Configuration& configuration) {
  const auto& given = configuration.agent.pod_sources.manifests;
  return given.empty() ? configuration.kubelet.static_pod_path : given;
}

Result<kube::Credentials> api_server_credentials(const config::KubernetesSettings& settings) {
  if (!settings.kubeconfig.empty()) return kube::kubeconfig_credentials(settings.kubeconfig);
  auto credentials = kube::service_account_credentials();
  if (!credentials) return fail(credentials.error(), "kubernetes.kubeconfig is not given");
  return credentials;
}

PodSources::PodSources(std::string node_name, pods::TrustedNamespaces trusted)
    : catalog_{std::move(node_name), std::move(trusted)} {}

PodSources::~PodSources() {
  answers_.finish();
  for (auto& files : credentials_) files.finish();
  files_.finish();
}

template <class Source, class... Args>
Source& PodSources::add(Args&&... args) {
  auto source = std::make_unique<Source>(std::forward<Args>(args)...);
  auto& reference = *source;
  catalog_.add(std::move(source));
  return reference;
}

Result<std::unique_ptr<PodSources>> PodSources::make(const asio::any_io_executor& reactor,
                                                     const Configuration& configuration) {
  const auto& settings = configuration.agent.pod_sources;
  const auto& kubernetes = configuration.agent.kubernetes;
  const auto node_name = host::node_name(kubernetes.node_name);
  std::unique_ptr<PodSources> sources{new PodSources(node_name, pods::TrustedNamespaces{settings.trusted_namespaces})};
  const auto pool = sources->answers_.get_executor();
  const auto reader = [&](const char* what) { return sources->credentials_.emplace_back(what).get_executor(); };

  if (const auto directory = manifest_directory(configuration); !directory.empty())
    sources->manifests_ = &sources->add<pods::ManifestSource>(
        reactor, sources->files_.get_executor(),
        pods::ManifestSourceOptions{.directory = directory, .node_name = node_name});
  if (!settings.kubelet_url.empty()) {
    auto kubelet = kube::url_credentials(settings.kubelet_url, settings.kubelet_token_file, settings.kubelet_ca_file);
    if (!kubelet) return fail(kubelet.error(), "podSources.kubelet");
    sources->add<pods::KubeletSource>(reactor, pool, reader("reading the files to ask the kubelet with"),
                                      *std::move(kubelet), pods::KubeletSourceOptions{});
  }
  if (settings.api_server) {
    auto credentials = api_server_credentials(kubernetes);
    if (!credentials) return fail(credentials.error(), "podSources.apiServer");
    sources->api_server_ = std::make_unique<kube::Client>(
        reactor, reader("reading the files to ask the API server with"), *std::move(credentials));
    pods::ApiServerSourceOptions options{.node_name = node_name};
    options.reflector.longest_start_delay = kubernetes.start_spread;
    sources->node_ =
        std::make_unique<kube::NodeMirror>(reactor, pool, *sources->api_server_, node_name, options.reflector);
    sources->add<pods::ApiServerSource>(reactor, pool, *sources->api_server_, std::move(options));
  }
  return sources;
}

Result<void> check_pod_sources(const Configuration& configuration) {
  asio::io_context reactor{1};
  if (const auto made = PodSources::make(reactor.get_executor(), configuration); !made)
    return std::unexpected(made.error());
  return {};
}

void PodSources::manifests_changed() {
  if (manifests_ != nullptr) manifests_->look();
}

}  // namespace evictd::app
