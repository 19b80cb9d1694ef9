#include "evictctl/answers.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "evictctl/text.hpp"

namespace evictd::ctl::pod_table_test {
namespace {

v1::RankedPod& add(v1::RankPodsResponse& ranking, const std::string& name, std::int64_t usage, const std::string& why) {
  auto& pod = *ranking.add_pods();
  pod.mutable_pod()->set_namespace_("default");
  pod.mutable_pod()->set_name(name);
  pod.mutable_pod()->set_uid("uid-of-" + name);
  pod.set_usage(usage);
  pod.set_qos_class("BestEffort");
  pod.set_why(why);
  return pod;
}

v1::RankPodsResponse three_pods() {
  v1::RankPodsResponse ranking;
  ranking.set_signal("memory.available");
  ranking.set_unit("bytes");
  add(ranking, "bloat", 312 << 20, "best effort, uses 312Mi");
  auto& vital = add(ranking, "vital", 256 << 20, "critical: never evicted");
  vital.set_critical(true);
  vital.set_priority(2'000'000'000);
  auto& chill = add(ranking, "chill", 30 << 20, "within its request");
  chill.set_qos_class("Burstable");
  chill.set_request(32 << 20);
  chill.set_at_most(true);
  return ranking;
}

std::string print(const v1::RankPodsResponse& ranking, const TableLook& look = {}) {
  std::ostringstream out;
  print_ranking(out, ranking, look);
  return out.str();
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, columns(line));
  return widest;
}

TEST_CASE("pods stand in their order, and those that never go have no number") {
  CHECK(print(three_pods()) ==
        "#  POD            QOS               PRIO   USAGE  REQUEST  WHY\n"
        "1  default/bloat  BestEffort           0   312Mi        -  best effort, uses\n"
        "                                                           312Mi\n"
        "-  default/vital  BestEffort  2000000000   256Mi        -  critical: never\n"
        "                                                           evicted\n"
        "2  default/chill  Burstable            0  <=30Mi     32Mi  within its request\n");
}

TEST_CASE("a wide table has the uids and breaks no line") {
  const auto text = print(three_pods(), {.width = 160, .wide = true});
  CHECK(text.find("UID") != std::string::npos);
  CHECK(text.find("uid-of-bloat  best effort, uses 312Mi\n") != std::string::npos);
}

TEST_CASE("long names are cut short, and no line is longer than the terminal") {
  auto ranking = three_pods();
  add(ranking, std::string(253, 'n'), 1 << 30, "uses 312Mi more than it asked for");
  for (const std::size_t width : {200, 80, 60, 40}) {
    CAPTURE(width);
    for (const bool wide : {false, true}) CHECK(widest_line(print(ranking, {.width = width, .wide = wide})) <= width);
  }
  CHECK(print(ranking).find("…") != std::string::npos);
}

TEST_CASE("processes are counted, and nobody asks for some") {
  v1::RankPodsResponse ranking;
  ranking.set_signal("pid.available");
  ranking.set_unit("pids");
  add(ranking, "forks", 180, "runs 180 processes");
  CHECK(print(ranking) ==
        "#  POD            QOS         PRIO  USAGE  REQUEST  WHY\n"
        "1  default/forks  BestEffort     0    180        -  runs 180 processes\n");
}

TEST_CASE("a node without pods has nobody to go") {
  CHECK(print({}) == "nobody: there is no pod on the node that is not on its way out\n");
}

TEST_CASE("with colours the first one stands out and the critical one does not") {
  const auto text = print(three_pods(), {.paint = Paint{true}});
  CHECK(text.find("\x1b[1mdefault/bloat\x1b[0m") != std::string::npos);
  CHECK(text.find("\x1b[2mdefault/vital\x1b[0m") != std::string::npos);
  CHECK(text.find("  default/chill  ") != std::string::npos);
}

}  // namespace
}  // namespace evictd::ctl::pod_table_test
