#include "agent/node_reports.hpp"

#include <doctest/doctest.h>
#include <state.pb.h>

#include <boost/asio/io_context.hpp>

#include "agent/fakes.hpp"
#include "host/systemd.hpp"

namespace evictd::agent::node_reports_test {
namespace {

using namespace std::chrono_literals;
using enum core::NodeCondition;
using enum core::Signal;
using fixture::observed;
using fixture::operator""_GiB;

const core::Instant begin{1h};

struct Scene {
  void change(core::NodeConditions conditions, core::Instant now) {
    reports.conditions_changed({std::move(conditions)},
                               core::Turn{{.time = now, .reasons = {{core::WakeSource::Other, "", now}}}}, now);
  }

  Steps steps;
  boost::asio::io_context reactor{1};
  FakeObserver observer{steps, reactor};
  FakeLog log{steps};
  FakeSaver saver{steps};
  host::ServiceManager service{reactor.get_executor()};
  NodeReports reports{{.observer = observer, .log = log, .service = service, .state = saver}};
};

}  // namespace

TEST_CASE("a condition is so since it changed last, whatever the others do") {
  Scene scene;
  CHECK_FALSE(scene.reports.since(MemoryPressure));
  scene.change({MemoryPressure}, begin);
  scene.change({MemoryPressure, DiskPressure}, begin + 1s);
  scene.change({DiskPressure}, begin + 2s);
  CHECK(scene.reports.since(MemoryPressure) == begin + 2s);
  CHECK(scene.reports.since(DiskPressure) == begin + 1s);
  CHECK_FALSE(scene.reports.since(PidPressure));
}

TEST_CASE("since when conditions hold outlives a restart") {
  Scene first;
  first.change({MemoryPressure}, begin);
  state::v1::AgentState left;
  first.reports.add_to(left);
  Scene second;
  second.reports.restore(left, {MemoryPressure});
  second.change({MemoryPressure, DiskPressure}, begin + 1min);
  CHECK(second.reports.since(MemoryPressure) == begin);
}

TEST_CASE("a look at the node is fresh; where it cannot be read it is as of the last pass, and so is its capacity") {
  Scene scene;
  CHECK_FALSE(scene.reports.capacity(NodefsAvailable));
  node::NodeMemoryReading reading;
  reading.observations = observed({{NodefsAvailable, 5_GiB, 9_GiB}});
  scene.reports.observed(reading, begin);
  scene.observer.now = observed({{NodefsAvailable, 4_GiB, 9_GiB}});
  CHECK(scene.reports.look(begin)[NodefsAvailable]->available == 4_GiB);
  scene.observer.broken = true;
  CHECK(scene.reports.look(begin)[NodefsAvailable]->available == 5_GiB);
  CHECK(scene.reports.capacity(NodefsAvailable) == 9_GiB);
  CHECK_FALSE(scene.reports.capacity(MemoryAvailable));
}

TEST_CASE("the rates follow from passes and looks together") {
  Scene scene;
  const auto before = observed({{MemoryAvailable, 6_GiB, 8_GiB}});
  scene.reports.pass_ended({.observations = before, .conditions = {}}, begin);
  scene.observer.now = observed({{MemoryAvailable, 1_GiB, 8_GiB}});
  (void)scene.reports.look(begin + 5s);
  CHECK(scene.reports.fill_rates().rate(MemoryAvailable) == doctest::Approx(1.0 * 1_GiB));
}

TEST_CASE("a pass ends with what is to be saved") {
  Scene scene;
  scene.reports.pass_began();
  scene.reports.pass_ended({.observations = {}, .conditions = {}}, begin);
  CHECK(scene.steps == Steps{"save"});
  CHECK(scene.reports.passes() == 1);
}

}  // namespace evictd::agent::node_reports_test
