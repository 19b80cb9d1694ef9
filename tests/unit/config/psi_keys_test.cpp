#include <doctest/doctest.h>

#include "config/agent_configuration.hpp"
#include "fixture/result.hpp"

namespace evictd::config {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using fixture::value_of;

Result<AgentConfiguration> parse(std::string_view notifier) {
  return parse_agent_configuration(
      "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\nnotifier:\n" + std::string(notifier), "agent.yaml");
}

}  // namespace

TEST_CASE("the keys of PSI reach their places, and it is on unless told otherwise") {
  CHECK(value_of(parse("  memcg: true\n")).notifier.psi);
  const auto notifier = value_of(parse("  psi: false\n  psiWindow: 4s\n  psiSome: 3s\n  psiFull: 0s\n")).notifier;
  CHECK_FALSE(notifier.psi);
  CHECK(notifier.psi_window == 4s);
  CHECK(notifier.psi_some == 3s);
  CHECK(notifier.psi_full == 0s);
}

TEST_CASE("a stall that no window can hold is refused where it is written") {
  CHECK(error_of(parse("  psiSome: 600ms\n")) ==
        "agent.yaml:4: notifier.psiSome: 600ms is longer than notifier.psiWindow (500ms)");
  CHECK(error_of(parse("  psiWindow: 1s\n  psiFull: 2s\n")) ==
        "agent.yaml:5: notifier.psiFull: 2s is longer than notifier.psiWindow (1s)");
  CHECK(error_of(parse("  psiWindow: 100ms\n")) ==
        "agent.yaml:4: notifier.psiWindow: \"100ms\" is out of range: 500ms to 10s");
}

}  // namespace evictd::config
