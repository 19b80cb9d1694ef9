#include "app/pod_sources.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>

#include "cri/run.hpp"
#include "fixture/hanging_file.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "kube/api_server.hpp"
#include "pods/fake_source.hpp"

namespace evictd::app::pod_sources_test {
namespace {

using fixture::error_of;
using fixture::value_of;

std::vector<std::string> names(PodSources& sources) {
  std::vector<std::string> names;
  for (const auto& status : sources.catalog().status()) names.emplace_back(pods::name(status.origin));
  return names;
}

/// The sources made of this configuration; they are not started.
Result<std::vector<std::string>> made(const Configuration& configuration) {
  boost::asio::io_context reactor{1};
  auto sources = PodSources::make(reactor.get_executor(), configuration);
  if (!sources) return std::unexpected(sources.error());
  return names(**sources);
}

}  // namespace

TEST_CASE("a source is there if it is configured, the richest first") {
  fixture::Tree tree{fixture::file("config", R"(apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: x
)")};
  Configuration configuration;
  CHECK(value_of(made(configuration)).empty());
  configuration.agent.pod_sources.manifests = tree.path();
  configuration.agent.pod_sources.kubelet_url = "http://127.0.0.1:1";
  configuration.agent.pod_sources.api_server = true;
  configuration.agent.kubernetes.kubeconfig = tree.path("config");
  CHECK(value_of(made(configuration)) == std::vector<std::string>{"apiServer", "kubelet", "manifests"});
}

TEST_CASE("the kubelet's static pods are known where no other directory is given") {
  Configuration configuration;
  CHECK(manifest_directory(configuration).empty());
  configuration.kubelet.static_pod_path = "/etc/kubernetes/manifests";
  CHECK(manifest_directory(configuration) == "/etc/kubernetes/manifests");
  CHECK(value_of(made(configuration)) == std::vector<std::string>{"manifests"});
  configuration.agent.pod_sources.manifests = "/data";
  CHECK(manifest_directory(configuration) == "/data");
}

TEST_CASE("an API server without a way to it, and a kubeconfig that is not there, are errors that name their key") {
  Configuration configuration;
  configuration.agent.pod_sources.api_server = true;
  CHECK(error_of(made(configuration)).starts_with("podSources.apiServer: kubernetes.kubeconfig is not given: "));
  configuration.agent.kubernetes.kubeconfig = "/nowhere/config";
  CHECK(error_of(made(configuration)).starts_with("podSources.apiServer: /nowhere/config: cannot be read: "));
}

TEST_CASE("a token on a disk that hangs holds up neither what another source asks for nor what it is told") {
  test::ApiServer server;
  const auto feed = std::make_shared<test::Feed>();
  const std::string pod =
      R"({"metadata": {"name": "a", "namespace": "shop", "uid": "a"}, "spec": {"containers": [{"name": "main"}]}})";
  server.then(
      test::answers(200, R"({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [)" + pod + "]}"));
  server.then(test::streams(feed));
  fixture::Tree tree{fixture::file("config", R"(apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: ")" + server.url() +
                                                 R"("}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: x
)")};
  Configuration configuration;
  configuration.agent.pod_sources.kubelet_url = "https://127.0.0.1:1";
  configuration.agent.pod_sources.kubelet_token_file = tree.path("token");
  configuration.agent.pod_sources.api_server = true;
  configuration.agent.kubernetes.kubeconfig = tree.path("config");
  configuration.agent.kubernetes.start_spread = {};
  test::HeardSpecs heard;
  boost::asio::io_context reactor{1};
  const auto sources = value_of(PodSources::make(reactor.get_executor(), configuration));
  const fixture::HangingFile token{tree.path("token")};
  sources->catalog().start(heard);
  const auto known = [&] { return sources->catalog().status().front().pods == 1; };
  CHECK(test::run_until(reactor, known));
  sources->catalog().stop();
}

}  // namespace evictd::app::pod_sources_test
