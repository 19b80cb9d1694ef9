#include "evict/stop_order.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "fixture/pods.hpp"

namespace evictd::evict::stop_order_test {
namespace {

using fixture::container;
using fixture::sidecar;
using pods::ContainerState;
using enum pods::ContainerState;

/// A pod with the sidecars proxy and log, an ordinary init container setup, and the main containers web and job.
core::Pod spec() {
  auto pod = fixture::pod("a", {container("web"), container("job")});
  pod.init_containers = {sidecar("proxy"), container("setup"), sidecar("log")};
  return pod;
}

pods::RuntimePod running(const core::Pod& spec,
                         std::initializer_list<std::pair<const char*, ContainerState>> containers) {
  pods::RuntimePod pod{.pod = std::make_shared<const core::Pod>(spec)};
  for (const auto& [name, state] : containers) pod.containers.push_back({.id = name, .name = name, .state = state});
  return pod;
}

/// "log after web job", one for each container, in their order.
std::vector<std::string> told(const pods::RuntimePod& pod) {
  const auto turns = stop_order(pod);
  std::vector<std::string> lines;
  for (const auto& turn : turns) {
    auto& line = lines.emplace_back(turn.container->name);
    if (!turn.after.empty()) line += " after";
    for (const auto place : turn.after) line += " " + turns.at(place).container->name;
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("sidecars end after the main containers, the last one first") {
  CHECK(told(running(spec(), {{"proxy", Running}, {"log", Running}, {"web", Running}, {"job", Running}})) ==
        Lines{"proxy after web job log", "log after web job", "web", "job"});
}

TEST_CASE("nobody waits for what does not run any more") {
  CHECK(told(running(spec(), {{"proxy", Running}, {"log", Running}, {"web", Exited}, {"job", Running}})) ==
        Lines{"proxy after job log", "log after job", "job"});
  CHECK(told(running(spec(), {{"proxy", Running}, {"log", Exited}, {"web", Running}})) ==
        Lines{"proxy after web", "web"});
}

TEST_CASE("nothing waits for an ordinary init container, nor for one that the spec does not have") {
  CHECK(told(running(spec(), {{"proxy", Running}, {"setup", Running}})) == Lines{"proxy", "setup"});
  CHECK(told(running(spec(), {{"proxy", Running}, {"debugger", Running}, {"web", Running}})) ==
        Lines{"proxy after web", "debugger", "web"});
}

TEST_CASE("without sidecars all are stopped at once") {
  CHECK(told(running(fixture::pod("a"), {{"one", Running}, {"two", Running}})) == Lines{"one", "two"});
}

TEST_CASE("a container that runs has the hook of its spec") {
  auto with_hooks = spec();
  with_hooks.containers[0].pre_stop = core::ExecHook{{"/bin/web"}};
  with_hooks.containers[1].pre_stop = core::ExecHook{{"/bin/job"}};
  with_hooks.init_containers[0].pre_stop = core::ExecHook{{"/bin/proxy"}};
  const auto pod = running(with_hooks, {{"proxy", Running}, {"web", Running}, {"job", Created}, {"log", Running}});
  const auto turns = stop_order(pod);
  REQUIRE(turns.size() == 4);
  REQUIRE(turns[0].hook != nullptr);
  CHECK(*turns[0].hook == core::PreStop{core::ExecHook{{"/bin/proxy"}}});
  REQUIRE(turns[1].hook != nullptr);
  CHECK(*turns[1].hook == core::PreStop{core::ExecHook{{"/bin/web"}}});
  CHECK(turns[2].hook == nullptr);
  CHECK(turns[3].hook == nullptr);
}

}  // namespace evictd::evict::stop_order_test
