#include "app/runtime_offers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

#include "cri/fake_runtime.hpp"

namespace evictd::app::runtime_offers_test {
namespace {

constexpr int unimplemented = 12;

config::CriSettings at(const test::FakeRuntime& runtime) {
  config::CriSettings settings;
  settings.endpoint = runtime.endpoint();
  return settings;
}

const host::Offer& named(const std::vector<host::Offer>& offers, std::string_view name) {
  const auto found = std::ranges::find(offers, name, &host::Offer::name);
  REQUIRE(found != offers.end());
  return *found;
}

}  // namespace

TEST_CASE("the cgroup driver is the one that the runtime names, and none where it does not say") {
  test::FakeRuntime runtime;
  CHECK_FALSE(ask_cgroup_driver(runtime.endpoint()));  // it is not there
  runtime.start();
  CHECK_FALSE(ask_cgroup_driver(runtime.endpoint()));  // an older one
  runtime.set_cgroup_driver(runtime::v1::SYSTEMD);
  CHECK(ask_cgroup_driver(runtime.endpoint()) == "systemd");
  runtime.set_cgroup_driver(runtime::v1::CGROUPFS);
  CHECK(ask_cgroup_driver(runtime.endpoint()) == "cgroupfs");
  runtime.hang("RuntimeConfig");
  CHECK_FALSE(ask_cgroup_driver(runtime.endpoint()));
  CHECK_FALSE(ask_cgroup_driver("no endpoint"));
}

TEST_CASE("what the runtime has is told, and what follows where it has not") {
  test::FakeRuntime runtime;
  const auto absent = probe_runtime(at(runtime));
  REQUIRE(absent.size() == 1);
  CHECK_FALSE(absent.front().available);
  CHECK(absent.front().consequence.find("evictd waits for it") != std::string::npos);

  runtime.start();
  runtime.fail("GetContainerEvents", unimplemented);
  const auto older = probe_runtime(at(runtime));
  CHECK(named(older, "container runtime").detail == "fake 1.0");
  CHECK_FALSE(named(older, "runtime's cgroup driver").available);
  CHECK_FALSE(named(older, "runtime's cgroup driver").consequence.empty());
  CHECK_FALSE(named(older, "runtime events").available);
  CHECK(named(older, "runtime events").consequence.find("every 10 s") != std::string::npos);

  runtime.recover("GetContainerEvents");
  runtime.set_cgroup_driver(runtime::v1::SYSTEMD);
  const auto newer = probe_runtime(at(runtime));
  CHECK(named(newer, "runtime's cgroup driver").detail == "systemd");
  CHECK(named(newer, "runtime events").available);
  CHECK(named(newer, "runtime events").consequence.empty());
}

}  // namespace evictd::app::runtime_offers_test
