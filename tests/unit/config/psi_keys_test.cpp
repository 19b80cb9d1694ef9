#include <doctest/doctest.h>

#include "config/agent_configuration.hpp"
#include "fixture/result.hpp"

namespace evictd::config::psi_keys_test {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using fixture::value_of;

Result<AgentConfiguration> parse(std::string_view notifier) {
  return parse_agent_configuration(
      "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\nnotifier:\n" + std::string(notifier), "agent.yaml");
}

}  // namespace

TEST_CASE("the keys of PSI reach their places") {
  const auto notifier = value_of(parse("  psiSome: 300ms\n  psiFull: 0s\n")).notifier;
  CHECK(notifier.psi_some == 300ms);
  CHECK(notifier.psi_full == 0s);
}

TEST_CASE("a stall that the window cannot hold is refused where it is written") {
  CHECK(value_of(parse("  psiSome: 500ms\n")).notifier.psi_some == psi_window);
  for (const auto* key : {"psiSome", "psiFull"}) {
    const std::string name = key;
    CHECK(error_of(parse("  " + name + ": 600ms\n")) ==
          "agent.yaml:4: notifier." + name + ": \"600ms\" is out of range: 0s to 500ms");
  }
}

}  // namespace evictd::config::psi_keys_test
