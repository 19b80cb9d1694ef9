#include "evictctl/answers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "evictctl/text.hpp"

namespace evictd::ctl::threshold_table_test {
namespace {

v1::ThresholdSetting& add(v1::ThresholdSet& set, const std::string& signal, const std::string& value,
                          std::int64_t resolved) {
  auto& setting = *set.add_thresholds();
  setting.mutable_threshold()->set_signal(signal);
  setting.mutable_threshold()->set_unit(signal.ends_with("inodesFree") ? "inodes" : "bytes");
  setting.mutable_threshold()->set_value(value);
  setting.mutable_threshold()->set_resolved(resolved);
  setting.set_source("kubelet configuration");
  return setting;
}

v1::ThresholdSet some() {
  v1::ThresholdSet set;
  set.set_revision("0123456789abcdef");
  add(set, "memory.available", "500Mi", 500 << 20);
  auto& soft = add(set, "nodefs.available", "15%", 123'456'789'000);
  soft.mutable_threshold()->mutable_grace_period()->set_seconds(90);
  soft.mutable_threshold()->set_minimum_reclaim("1Gi");
  soft.set_source("90-evictctl.yaml");
  return set;
}

bool fits(const std::string& text, std::size_t width) {
  std::istringstream lines(text);
  bool all = true;
  for (std::string line; std::getline(lines, line);) all = all && columns(line) <= width;
  return all;
}

}  // namespace

TEST_CASE("thresholds are a table, with what is to be said of them below it") {
  auto set = some();
  set.add_staged("memory.available: 500Mi -> 5Gi");
  set.add_warnings("imagefs.available<10%: it cannot fire while the signal is not measured on this node");
  std::ostringstream out;
  print_thresholds(out, set, {.width = 80});
  CHECK(out.str() == R"(SIGNAL            EVICTS BELOW  THAT IS  GRACE  RECLAIM  FROM
memory.available         500Mi    500Mi  -            -  kubelet configuration
nodefs.available           15%    115Gi  1m30s      1Gi  90-evictctl.yaml
revision 0123456789abcdef
held back: memory.available: 500Mi -> 5Gi
warning: imagefs.available<10%: it cannot fire while the signal is not measured
on this node
)");
  CHECK(fits(out.str(), 80));
  std::ostringstream painted;
  print_thresholds(painted, set, {.width = 80, .paint = Paint{true}});
  CHECK(painted.str().find(Paint{true}(Style::Warning, "held back: memory.available: 500Mi -> 5Gi")) !=
        std::string::npos);
}

TEST_CASE("no thresholds are said to be none") {
  std::ostringstream out;
  print_thresholds(out, {}, {.width = 80});
  CHECK(out.str().starts_with("no thresholds: nothing is ever evicted for a shortage\n"));
}

TEST_CASE("a change says what it did, and a dry run what it would do") {
  v1::UpdateThresholdsResponse response;
  response.add_changes("memory.available: 100Mi -> 500Mi");
  response.add_evict_at_once("memory.available<500Mi: 420Mi available");
  response.set_saved_to("/etc/evictd/thresholds.d/90-evictctl.yaml");
  response.mutable_thresholds()->set_revision("0123456789abcdef");
  std::ostringstream done;
  print_update(done, response, false, {.width = 80});
  CHECK(done.str() ==
        "changed: memory.available: 100Mi -> 500Mi\n"
        "evicts at once: memory.available<500Mi: 420Mi available\n"
        "saved to /etc/evictd/thresholds.d/90-evictctl.yaml\n"
        "revision 0123456789abcdef\n");
  std::ostringstream asked;
  print_update(asked, response, true, {.width = 80});
  CHECK(asked.str().starts_with("would change: memory.available: 100Mi -> 500Mi\nwould evict at once: "));
}

TEST_CASE("a suggestion shows its arithmetic") {
  v1::SuggestThresholdsResponse response;
  response.set_signal("memory.available");
  response.set_value("100Mi");
  auto& step = *response.add_steps();
  step.set_what("what is taken until the first memory is back");
  step.set_arithmetic("1000.0Mi/s x 40ms");
  step.set_bytes(40 << 20);
  response.mutable_watched()->set_seconds(3600);
  response.set_crossings(3);
  std::ostringstream out;
  print_suggestion(out, response, {.width = 80});
  CHECK(out.str() ==
        "memory.available=100Mi\n"
        "BYTES  FOR\n"
        " 40Mi  what is taken until the first memory is back (1000.0Mi/s x 40ms)\n"
        "seen in 1h: 3 evictions for memory\n");
}

TEST_CASE("names and messages of others do not reach the terminal as they are") {
  auto set = some();
  set.mutable_thresholds(0)->set_source("\x1b[31mred");
  set.add_warnings("\x1b]0;title\x07");
  std::ostringstream out;
  print_thresholds(out, set, {.width = 80});
  v1::SuggestThresholdsResponse suggestion;
  suggestion.set_signal("\x1b[2J");
  suggestion.set_value("\x1b]0;title\x07");
  print_suggestion(out, suggestion, {.width = 80});
  CHECK(out.str().find('\x1b') == std::string::npos);
}

}  // namespace evictd::ctl::threshold_table_test
