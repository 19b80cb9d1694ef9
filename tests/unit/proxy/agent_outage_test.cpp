#include "proxy/agent_outage.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace evictd::proxy::agent_outage_test {
namespace {

using namespace std::chrono_literals;

struct Told {
  std::vector<std::string> lines;
  AgentOutage outage{"no pod starts"};

  void undecided(std::string_view why, core::Instant now) { tell(outage.undecided(why, now)); }
  void decided() { tell(outage.decided()); }
  void tell(const std::optional<std::string>& line) {
    if (line) lines.push_back(*line);
  }
};

core::Instant at(std::chrono::seconds time) { return core::Instant{} + 1h + time; }

TEST_CASE("an outage is told once, and its end") {
  Told told;
  told.decided();
  CHECK(told.lines.empty());
  told.undecided("away", at(0s));
  told.undecided("still away", at(1s));
  told.undecided("still away", at(200s));
  CHECK(told.lines ==
        std::vector<std::string>{"the agent does not decide on pods (away): no pod starts until it does"});
  told.decided();
  told.decided();
  REQUIRE(told.lines.size() == 2);
  CHECK(told.lines[1] == "the agent decides on pods again; it did not on 3");
}

TEST_CASE("an agent that comes and goes is told of once a minute") {
  Told told;
  for (int second = 0; second < 180; ++second) {
    told.undecided("away", at(std::chrono::seconds(second)));
    told.decided();
  }
  CHECK(told.lines.size() == 2 * 3);
}

TEST_CASE("an outage that begins too soon after another is told once it may be") {
  Told told;
  told.undecided("first", at(0s));
  told.decided();
  told.undecided("second", at(59s));
  CHECK(told.lines.size() == 2);
  told.undecided("second", at(61s));
  REQUIRE(told.lines.size() == 3);
  CHECK(told.lines[2].find("second") != std::string::npos);
}

}  // namespace
}  // namespace evictd::proxy::agent_outage_test
