#include "agent/decider.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <memory>

#include "agent/fake_clock.hpp"
#include "fixture/node.hpp"
#include "fixture/pods.hpp"

namespace evictd::agent::decider_test {

TEST_CASE("what the parts tell is the machine's at once, and without a time to wait for the deadline is left alone") {
  boost::asio::io_context reactor{1};
  FakeClock clock{reactor};
  wake::Wakes wakes{reactor.get_executor()};
  wake::Deadline deadline{reactor.get_executor(), wakes};
  Decider decider{{.thresholds = {fixture::threshold(core::Signal::MemoryAvailable, "1Gi")}}, {}, clock, deadline};
  core::Turn turn{{.time = clock.now(), .reasons = {}}};
  decider.tell(core::PodsChanged{std::make_shared<core::PodList>(fixture::pods({fixture::pod("a")}))}, turn);
  decider.tell(core::PolicyChanged{{.thresholds = {fixture::threshold(core::Signal::PidAvailable, "10")}}, 0}, turn);
  REQUIRE(decider.synchronizer().thresholds().size() == 1);
  CHECK(decider.synchronizer().thresholds().front().signal == core::Signal::PidAvailable);
  CHECK(deadline.status().front().state == "waiting: nothing has an end");
}

}  // namespace evictd::agent::decider_test
