#include "core/wake.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>
#include <string>

namespace evictd::core::wake_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("each source of wake-ups has a name of its own, by which it is found") {
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(WakeSource::Other); ++i) {
    const auto source = static_cast<WakeSource>(i);
    CHECK_FALSE(name(source).empty());
    CHECK(parse_wake_source(name(source)) == source);
    names.emplace(name(source));
  }
  CHECK(names.size() == static_cast<std::size_t>(WakeSource::Other) + 1);
  CHECK_FALSE(parse_wake_source("a source of a later evictd"));
  CHECK(name(WakeSource::Memcg) == "memcg");
  CHECK(name(WakeSource::DropInsPlace) == "drop-ins' place");
  CHECK(name(WakeSource::Kubelet) == "kubelet");
  CHECK(name(WakeSource::Followup) == "followup");
  CHECK(name(WakeSource::Shutdown) == "shutdown");
  CHECK(name(WakeSource::Trimmed) == "trimmed");
}

TEST_CASE("stages are listed by their names, by which they are found") {
  const auto stages = stages_by_name();
  CHECK(stages.size() == static_cast<std::size_t>(Stage::Cleanup) + 1);
  CHECK(std::ranges::is_sorted(stages, {}, [](Stage stage) { return name(stage); }));
  for (const auto stage : stages) CHECK(parse_stage(name(stage)) == stage);
  CHECK_FALSE(parse_stage("a stage of a later evictd"));
  CHECK(name(Stage::FirstRelease) == "first_release");
}

TEST_CASE("a turn notes how long after the wake-up a stage was reached") {
  Turn turn{{.time = Instant{10s}, .reasons = {}}};
  CHECK_FALSE(turn.stages[Stage::Observed]);
  turn.reach(Stage::Observed, Instant{10s} + 20us);
  CHECK(turn.stages[Stage::Observed] == 20us);
  CHECK(turn.stages == StageTimes{{Stage::Observed, 20us}});
  turn.reach(Stage::Observed, Instant{10s} + 30us);
  CHECK(turn.stages[Stage::Observed] == 30us);
}

}  // namespace
}  // namespace evictd::core::wake_test
