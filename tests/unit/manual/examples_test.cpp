#include "fixture/documents.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "config/agent_keys.hpp"
#include "fixture/program.hpp"
#include "fixture/tree.hpp"

// The examples of configuration in the README and in the manual, as `evictd check` finds them.

namespace evictd::examples_test {
namespace {

constexpr auto agent_header = "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n";
constexpr auto kubelet_header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

/// Whether the fragment begins with a section of an AgentConfiguration.
bool is_of_agent(const std::string& fragment) {
  return std::ranges::any_of(config::agent_keys(), [&](const config::AgentKey& key) {
    const auto section = key.path.substr(0, key.path.find('.'));
    return fragment.starts_with(section + ":") || fragment.find("\n" + section + ":") != std::string::npos;
  });
}

/// A file that the examples name, and that no machine has.
constexpr auto kubeconfig = R"(apiVersion: v1
kind: Config
current-context: example
contexts: [{name: example, context: {cluster: example, user: evictd}}]
clusters: [{name: example, cluster: {server: "http://127.0.0.1:6443"}}]
users: [{name: evictd, user: {}}]
)";

std::string with_kubeconfig(std::string example, const std::string& file) {
  constexpr std::string_view named = "/etc/evictd/kubeconfig";
  const auto at = example.find(named);
  return at == std::string::npos ? example : example.replace(at, named.size(), file);
}

/// The rule for a fragment: what begins with a section of an AgentConfiguration is one, anything else a
/// KubeletConfiguration.
std::string completed(const std::string& example) {
  if (example.find("kind: ") != std::string::npos) return example;
  return (is_of_agent(example) ? agent_header : kubelet_header) + example;
}

fixture::Outcome check(const std::string& document) {
  const bool drop_in = document.find("thresholds.d/") != std::string::npos;
  const bool agent = document.find("kind: AgentConfiguration") != std::string::npos;
  const fixture::Tree drop_ins{{fixture::file("10-example.yaml", drop_in ? document : kubelet_header)}};
  const fixture::Tree credentials{fixture::file("kubeconfig", kubeconfig)};
  const auto standard = agent_header + ("thresholds: {dropIns: " + drop_ins.path("").native() + "}\n");
  const fixture::Tree tree{
      {fixture::file("agent.yaml", agent ? with_kubeconfig(document, credentials.path("kubeconfig")) : standard),
       fixture::file("kubelet.yaml", agent || drop_in ? kubelet_header : document)}};
  return fixture::run_evictd(
      {"check", "--config", tree.path("agent.yaml").native(), "--kubelet-config", tree.path("kubelet.yaml").native()});
}

}  // namespace

TEST_CASE("evictd check finds nothing wrong with any example of configuration in the documents") {
  const auto examples = fixture::all_code_blocks("yaml");
  REQUIRE_FALSE(examples.empty());
  for (const auto& example : examples) {
    CAPTURE(example.document);
    CAPTURE(example.line);
    CAPTURE(example.text);
    const auto checked = check(completed(example.text));
    CAPTURE(checked.err);
    CHECK(checked.exit_code == 0);
  }
}

TEST_CASE("an example with a mistake is found") {
  CHECK(check(completed("http: {prot: 9109}\n")).exit_code == 2);
  CHECK(check(completed("shutdownGracePeriodCriticalPods: 10s\n")).exit_code == 2);
  CHECK(check(completed("evictionHard: {memory.availabel: 1Gi}\n")).exit_code == 2);
  CHECK(
      check(std::string("# thresholds.d/\n") + kubelet_header + "evictionHard: {memory.available: much}\n").exit_code ==
      2);
}

TEST_CASE("blocks and commands are read with the lines they stand in") {
  const auto blocks = fixture::code_blocks("text\n```sh\na b   # why\n\n# only said\nc \\\n  d\n```\n```\nnone\n```\n");
  REQUIRE(blocks.size() == 2);
  CHECK(blocks[0].language == "sh");
  CHECK(blocks[0].line == 3);
  CHECK(blocks[1].language.empty());
  CHECK(blocks[1].text == "none\n");
  const auto commands = fixture::commands_of(blocks[0]);
  REQUIRE(commands.size() == 2);
  CHECK(commands[0].text == "a b");
  CHECK(commands[0].line == 3);
  CHECK(commands[1].text == "c d");
  CHECK(commands[1].line == 7);
}

}  // namespace evictd::examples_test
