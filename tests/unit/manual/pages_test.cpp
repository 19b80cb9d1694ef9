#include "manual/pages.hpp"

#include <doctest/doctest.h>

#include <string>

#include "config/agent_keys.hpp"

namespace evictd::manual::pages_test {

TEST_CASE("text of a manual page begins no request and no escape") {
  CHECK(roff("plain, \"quoted\"") == "plain, \"quoted\"");
  CHECK(roff(".TH") == "\\&.TH");
  CHECK(roff("'so") == "\\&'so");
  CHECK(roff("a\\nb") == "a\\enb");
  CHECK(roff("--dry-run") == "\\-\\-dry\\-run");
  CHECK(roff("~^`") == "\\(ti\\(ha\\(ga");
  CHECK(roff("12 µs … → 𝄞") == "12 \\[u00B5]s \\[u2026] \\[u2192] \\[u1D11E]");
}

TEST_CASE("a page has the version, and each key with its default and what it may be") {
  const auto text = page("version @VERSION@\n@KEYS@\nend", "1.2.3");
  CHECK(text.starts_with("version 1.2.3\n.TP\n\\fBstateDirectory\\fR (default: \\fB/var/lib/evictd\\fR)\n"));
  CHECK(text.find("\n.SS node\n.TP\n\\fBnode.cgroupRoot\\fR (default: \\fB/\\fR)\n") != std::string::npos);
  CHECK(text.ends_with("\nend"));
  for (const auto& key : config::agent_keys())
    CHECK(text.find("\\fB" + key.path + "\\fR (default: ") != std::string::npos);
}

}  // namespace evictd::manual::pages_test
