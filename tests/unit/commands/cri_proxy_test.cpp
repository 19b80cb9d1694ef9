#include <doctest/doctest.h>

#include "api/temporary_directory.hpp"
#include "fixture/program.hpp"
#include "fixture/tree.hpp"

namespace evictd::commands::cri_proxy_test {
namespace {

/// Runs the proxy with these sections of an AgentConfiguration, which cannot work: it comes back.
fixture::Outcome start(const std::string& sections) {
  const fixture::Tree tree{
      {fixture::file("agent.yaml", "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n" + sections),
       fixture::file("kubelet.yaml", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")}};
  return fixture::run_evictd({"cri-proxy", "--config", tree.path("agent.yaml").native(), "--kubelet-config",
                              tree.path("kubelet.yaml").native()});
}

}  // namespace

TEST_CASE("a proxy that could not work refuses, and says which key is wrong") {
  const auto check = [](const std::string& sections, const std::string& line) {
    const auto outcome = start(sections);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err == line + "\n");
  };
  check("runtimeDirectory: /run/e\ncri: {endpoint: \"unix:///run/e/cri.sock\"}\n",
        "evictd: cri.endpoint: /run/e/cri.sock is evictd cri-proxy's own (runtimeDirectory)");
}

TEST_CASE("a proxy that cannot listen says why") {
  const test::TemporaryDirectory directory;
  const auto outcome = start("runtimeDirectory: " + directory / "no/such/directory" + "\n");
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err.find("evictd: runtimeDirectory: " + directory / "no/such/directory" + " cannot be made") !=
        std::string::npos);
}

}  // namespace evictd::commands::cri_proxy_test
