#include "agent/pod_devices.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>

#include "agent/fake_plugin_calls.hpp"
#include "cri/run.hpp"
#include "fixture/machines.hpp"

namespace evictd::agent::pod_devices_test {
namespace {

using admission::ContainerAllocation;
using admission::DeviceEdits;
using admission::PodAllocation;
using Calls = std::vector<std::string>;

const std::string gpu = "example.com/gpu";

struct Scene {
  Result<void> allocate(PodAllocation& allocation) {
    auto pod = fixture::with_init(fixture::pod("a", {fixture::container("main"), fixture::container("beside")}),
                                  {fixture::container("init")});
    return test::run(reactor, allocate_devices(plugins, std::make_shared<const core::Pod>(std::move(pod)), allocation));
  }
  Result<void> start(const std::string& container, const PodAllocation& allocation) {
    return test::run(reactor, pre_start_containers(plugins, container, allocation));
  }

  boost::asio::io_context reactor;
  FakePluginCalls plugins;
};

}  // namespace

TEST_CASE("a wish is asked for once, and what was not asked yet is nothing") {
  FakePluginCalls plugins;
  DeviceWishes wishes{&plugins};
  int made = 0;
  const auto preferred = [&](const admission::DeviceQuestion& question) {
    return wishes.preferred(question.container, question.resource, [&] {
      ++made;
      return question;
    });
  };
  const admission::DeviceQuestion first{.container = "main", .resource = gpu, .available = {"a", "b"}, .size = 1};
  auto second = first;
  second.container = "beside";
  CHECK(preferred(first).value().empty());
  CHECK(preferred(second).value().empty());
  CHECK(wishes.take_open() == first);
  CHECK(wishes.take_open() == std::nullopt);
  wishes.learn(first, std::set<std::string>{"b"});
  auto changed = first;
  changed.available = {"b", "c"};
  CHECK(preferred(changed).value() == std::set<std::string>{"b"});
  CHECK(preferred(second).value().empty());
  CHECK(wishes.take_open() == second);
  wishes.learn(second, fail("no"));
  CHECK(fixture::error_of(preferred(second)) == "device plugin GetPreferredAllocation rpc failed with err: no");
  CHECK(made == 2);

  plugins.has_wishes = false;
  wishes = DeviceWishes{&plugins};
  CHECK(preferred(first).value().empty());
  CHECK(wishes.take_open() == std::nullopt);
  CHECK(made == 2);
}

TEST_CASE("a pod that asks for no plugin's resource has nothing to do with plugins") {
  const FakePluginCalls plugins;
  const auto asking = [](std::string_view resource, std::string_view count) {
    return fixture::pod("a", {fixture::wanting(fixture::container("main"), std::string(resource), count)});
  };
  CHECK(wants_plugin_devices(asking(gpu, "1"), plugins));
  CHECK(wants_plugin_devices(fixture::with_init(fixture::pod("a"), asking(gpu, "1").containers), plugins));
  CHECK_FALSE(wants_plugin_devices(asking(gpu, "0"), plugins));
  CHECK_FALSE(wants_plugin_devices(asking("cpu", "1"), plugins));
}

TEST_CASE("plugins allocate in the order in which containers start, and once for each") {
  Scene scene;
  PodAllocation allocation{{"beside", {.devices = {{gpu, {"c"}}, {"other/nic", {"n"}}}}},
                           {"init", {.devices = {{gpu, {"a"}}}}},
                           {"main", {.devices = {{gpu, {"a", "b"}}, {"example.com/nic", {"n"}}}}}};
  CHECK(scene.allocate(allocation).has_value());
  CHECK(scene.plugins.calls == Calls{"allocate a", "allocate a b", "allocate n", "allocate c"});
  CHECK(allocation.at("main").edits == DeviceEdits{.environment = {{gpu, " a b"}, {"example.com/nic", " n"}}});
  CHECK(scene.allocate(allocation).has_value());
  CHECK(scene.plugins.calls.size() == 4);
}

TEST_CASE("what is no plugin's is not asked about") {
  Scene scene;
  PodAllocation allocation{{"main", {.cpus = {1}, .devices = {{"other/nic", {"n"}}}}}};
  CHECK(scene.allocate(allocation).has_value());
  CHECK(scene.plugins.calls.empty());
  CHECK_FALSE(allocation.at("main").edits.has_value());
}

TEST_CASE("a plugin that fails ends it") {
  Scene scene;
  scene.plugins.failing = "allocate";
  PodAllocation allocation{{"main", {.devices = {{gpu, {"a"}}}}}};
  CHECK(fixture::error_of(scene.allocate(allocation)) == "no");
  CHECK_FALSE(allocation.at("main").edits.has_value());
}

TEST_CASE("plugins hear of the container that starts, or of all") {
  Scene scene;
  const PodAllocation allocation{{"init", {.devices = {{gpu, {"a"}}}}},
                                 {"main", {.devices = {{gpu, {"b"}}, {"other/nic", {"n"}}}}}};
  CHECK(scene.start("main", allocation).has_value());
  CHECK(scene.plugins.calls == Calls{"start b"});
  CHECK(scene.start("", allocation).has_value());
  CHECK(scene.plugins.calls == Calls{"start b", "start a", "start b"});
  scene.plugins.failing = "start";
  CHECK(fixture::error_of(scene.start("main", allocation)) ==
        "device plugin PreStartContainer rpc failed with err: no");
}

}  // namespace evictd::agent::pod_devices_test
