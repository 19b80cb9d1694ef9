#include "agent/node_reports.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>

#include "agent/fakes.hpp"
#include "host/systemd.hpp"

namespace evictd::agent::node_reports_test {
namespace {

using namespace std::chrono_literals;
using enum core::Signal;
using fixture::observed;
using fixture::operator""_GiB;

const core::Instant begin{1h};

struct Scene {
  Steps steps;
  boost::asio::io_context reactor{1};
  FakeObserver observer{steps, reactor};
  FakeSaver saver{steps};
  host::ServiceManager service{reactor.get_executor()};
  ConditionTimes conditions;
  NodeReports reports{{.observer = observer, .service = service, .state = saver, .conditions = conditions}};
};

}  // namespace

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

TEST_CASE("while evictd only watches others are told of no pressure") {
  Scene scene;
  scene.reports.conditions_changed({core::NodeCondition::MemoryPressure}, begin);
  scene.reports.only_watch(true);
  CHECK(scene.reports.conditions().empty());
  scene.reports.only_watch(false);
  CHECK(scene.reports.conditions() == core::NodeConditions{core::NodeCondition::MemoryPressure});
}

TEST_CASE("a pass ends with what is to be saved") {
  Scene scene;
  scene.reports.pass_began();
  scene.reports.pass_ended({.observations = {}, .conditions = {}}, begin);
  CHECK(scene.steps == Steps{"save"});
  CHECK(scene.reports.passes() == 1);
}

}  // namespace evictd::agent::node_reports_test
