#include "devices/plugins.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/temporary_directory.hpp"
#include "cri/run.hpp"
#include "devices/device_list.hpp"
#include "devices/fake_plugin.hpp"
#include "fixture/result.hpp"

namespace evictd::devices::plugins_test {
namespace {

using namespace std::chrono_literals;
using admission::DeviceGroup;
using admission::NumaMask;
using test::FakePlugin;
using test::plugin_device;

const std::string gpu = "example.com/gpu";

/// A directory with plugins in it, and who listens to them.
struct Scene {
  explicit Scene(std::chrono::milliseconds grace = 5min, std::chrono::milliseconds patience = 60s) {
    plugins.emplace(reactor.get_executor(), PluginsOptions{.directory = directory.path().native(),
                                                           .configured = {"example.com/configured"},
                                                           .patience = patience,
                                                           .grace = grace});
  }

  Result<void> add(const std::string& resource = gpu, const std::string& endpoint = "gpu.sock") {
    return test::run(reactor, plugins->add({.resource = resource, .endpoint = endpoint}));
  }
  [[nodiscard]] const DeviceGroup* group(const std::string& resource = gpu) const {
    const auto found = plugins->devices().find(resource);
    return found == plugins->devices().end() ? nullptr : found->second.get();
  }
  bool comes_to_have(const DeviceGroup& wanted, const std::string& resource = gpu) {
    return test::run_until(reactor, [&] { return group(resource) != nullptr && *group(resource) == wanted; });
  }

  test::TemporaryDirectory directory;
  boost::asio::io_context reactor;
  std::optional<Plugins> plugins;
};

const DeviceGroup two{.places = {{"a", NumaMask{1}}, {"b", NumaMask{2}}}, .healthy = {"a", "b"}};
const DeviceGroup two_lost{.places = two.places};

}  // namespace

TEST_CASE("a plugin's devices are known once it has told them, and their health as it changes") {
  Scene scene;
  FakePlugin plugin{scene.directory / "gpu.sock"};
  plugin.tell({plugin_device("a", {0}), plugin_device("b", {1})});
  plugin.start();
  CHECK(fixture::error_of(scene.add()) == "no error");
  CHECK(scene.comes_to_have(two));
  plugin.tell({plugin_device("a", {0}), plugin_device("b", {1}, false)});
  CHECK(scene.comes_to_have({.places = two.places, .healthy = {"a"}}));
  plugin.tell({plugin_device("b", {1})});
  CHECK(scene.comes_to_have({.places = {{"b", NumaMask{2}}}, .healthy = {"b"}}));
  scene.plugins.reset();  // with a stream under way
}

TEST_CASE("devices of a plugin that has gone are not healthy, and are forgotten after the grace period") {
  for (const auto grace : {std::chrono::milliseconds{10min}, 1ms}) {
    Scene scene{grace};
    FakePlugin plugin{scene.directory / "gpu.sock"};
    plugin.tell({plugin_device("a", {0}), plugin_device("b", {1})});
    plugin.start();
    REQUIRE(scene.add().has_value());
    REQUIRE(scene.comes_to_have(two));
    plugin.stop();
    if (grace > 1min)
      CHECK(scene.comes_to_have(two_lost));
    else
      CHECK(test::run_until(scene.reactor, [&] { return scene.group() == nullptr; }));

    // It starts again.
    plugin.start();
    REQUIRE(scene.add().has_value());
    CHECK(scene.comes_to_have(two));
  }
}

TEST_CASE(
    "what was served before a restart is known without a healthy device until its plugin is back, or for the grace") {
  for (const auto grace : {std::chrono::milliseconds{10min}, 1ms}) {
    Scene scene;
    int changes = 0;
    scene.plugins.emplace(scene.reactor.get_executor(), PluginsOptions{.directory = scene.directory.path().native(),
                                                                       .configured = {"example.com/configured"},
                                                                       .served_before = {gpu, "example.com/configured"},
                                                                       .patience = 60s,
                                                                       .grace = grace});
    scene.plugins->when_resources_change([&changes] { ++changes; });
    REQUIRE(scene.group() != nullptr);
    CHECK(*scene.group() == DeviceGroup{});
    CHECK(scene.plugins->resources() == std::set<std::string>{gpu});
    if (grace > 1min) {
      CHECK(fixture::error_of(test::run(scene.reactor, scene.plugins->allocate(gpu, {"a"}))) ==
            "endpoint of example.com/gpu has been stopped");
    } else {
      CHECK(test::run_until(scene.reactor, [&] { return scene.group() == nullptr; }));
      CHECK(changes == 1);
    }

    FakePlugin plugin{scene.directory / "gpu.sock"};
    plugin.tell({plugin_device("a", {0}), plugin_device("b", {1})});
    plugin.start();
    REQUIRE(scene.add().has_value());
    CHECK(scene.comes_to_have(two));
    CHECK(changes == (grace < 1min ? 2 : 0));
    FakePlugin nics{scene.directory / "nic.sock"};
    nics.tell({plugin_device("c")});
    nics.start();
    REQUIRE(scene.add("example.com/nic", "nic.sock").has_value());
    CHECK(changes == (grace < 1min ? 3 : 1));
    CHECK(scene.plugins->resources() == std::set<std::string>{gpu, "example.com/nic"});
  }
}

TEST_CASE("plugins that are left are unknown: calls fail, also those under way, and nobody registers any more") {
  Scene scene;
  FakePlugin plugin{scene.directory / "gpu.sock"};
  FakePlugin hanging{scene.directory / "nic.sock"};
  plugin.tell({plugin_device("a", {0}), plugin_device("b", {1})});
  plugin.set_options(true, true);
  plugin.hang("Allocate");
  hanging.hang("GetDevicePluginOptions");
  plugin.start();
  hanging.start();
  REQUIRE(scene.add().has_value());
  REQUIRE(scene.comes_to_have(two));
  int changes = 0;
  scene.plugins->when_resources_change([&changes] { ++changes; });

  std::optional<Result<admission::DeviceEdits>> allocated;
  std::optional<Result<void>> added;
  boost::asio::co_spawn(scene.reactor, scene.plugins->allocate(gpu, {"a"}),
                        [&](const std::exception_ptr&, auto result) { allocated = std::move(result); });
  boost::asio::co_spawn(scene.reactor, scene.plugins->add({.resource = "example.com/nic", .endpoint = "nic.sock"}),
                        [&](const std::exception_ptr&, auto result) { added = std::move(result); });
  REQUIRE(test::run_until(
      scene.reactor, [&] { return plugin.was_called("Allocate a") && hanging.was_called("GetDevicePluginOptions"); }));
  scene.plugins->leave("it is another's");
  CHECK(scene.plugins->devices().empty());
  CHECK(scene.plugins->resources() == std::set<std::string>{gpu});
  CHECK_FALSE(scene.plugins->has_preferences(gpu));
  REQUIRE(test::run_until(scene.reactor, [&] { return allocated.has_value() && added.has_value(); }));
  CHECK(fixture::error_of(*allocated).starts_with("rpc error: "));
  CHECK(fixture::error_of(*added) == "it is another's");
  CHECK(fixture::error_of(scene.add()) == "it is another's");
  CHECK(fixture::error_of(test::run(scene.reactor, scene.plugins->allocate(gpu, {"b"}))) == "it is another's");
  CHECK(test::run(scene.reactor, scene.plugins->pre_start(gpu, {"a"})).has_value());
  plugin.stop();
  scene.reactor.run_for(20ms);
  CHECK(scene.plugins->devices().empty());
  CHECK(changes == 0);
}

TEST_CASE("a plugin that registers again takes the place of the one before, whose end means nothing then") {
  Scene scene;
  FakePlugin first{scene.directory / "first.sock"};
  first.tell({plugin_device("a")});
  first.start();
  REQUIRE(scene.add(gpu, "first.sock").has_value());
  REQUIRE(scene.comes_to_have({.places = {{"a", {}}}, .healthy = {"a"}}));

  FakePlugin second{scene.directory / "second.sock"};
  second.tell({plugin_device("b")});
  second.start();
  REQUIRE(scene.add(gpu, "second.sock").has_value());
  const DeviceGroup of_second{.places = {{"b", {}}}, .healthy = {"b"}};
  CHECK(scene.comes_to_have(of_second));
  first.tell({plugin_device("c")});
  first.stop();
  second.tell({plugin_device("b"), plugin_device("d")});
  CHECK(scene.comes_to_have({.places = {{"b", {}}, {"d", {}}}, .healthy = {"b", "d"}}));
}

TEST_CASE("two plugins serve two resources") {
  Scene scene;
  FakePlugin gpus{scene.directory / "gpu.sock"};
  FakePlugin nics{scene.directory / "nic.sock"};
  for (auto* plugin : {&gpus, &nics}) {
    plugin->tell({plugin_device("a")});
    plugin->start();
  }
  REQUIRE(scene.add().has_value());
  REQUIRE(scene.add("example.com/nic", "nic.sock").has_value());
  const DeviceGroup one{.places = {{"a", {}}}, .healthy = {"a"}};
  CHECK(scene.comes_to_have(one));
  CHECK(scene.comes_to_have(one, "example.com/nic"));
  gpus.stop();
  CHECK(scene.comes_to_have({.places = one.places}));
  CHECK(*scene.group("example.com/nic") == one);
}

TEST_CASE("what the configuration has devices of is no plugin's") {
  Scene scene;
  CHECK(fixture::error_of(scene.add("example.com/configured")).find("admission.devices") != std::string::npos);
}

TEST_CASE("a plugin that is not there, or is no socket, is not taken up") {
  Scene scene;
  CHECK(fixture::error_of(scene.add()).starts_with("failed to dial device plugin: "));
  std::filesystem::create_symlink("nowhere", scene.directory / "gpu.sock");
  CHECK(fixture::error_of(scene.add()).ends_with("gpu.sock: is no socket"));
  CHECK(scene.group() == nullptr);
}

TEST_CASE("a plugin that hangs when it is greeted is given up; one that fails then says why") {
  {
    Scene scene{5min, 100ms};
    FakePlugin hanging{scene.directory / "gpu.sock"};
    hanging.hang("GetDevicePluginOptions");
    hanging.start();
    CHECK(fixture::error_of(scene.add()).starts_with("failed to "));
    CHECK(scene.group() == nullptr);
  }
  Scene scene;
  FakePlugin failing{scene.directory / "gpu.sock"};
  failing.fail("GetDevicePluginOptions", {grpc::StatusCode::INTERNAL, "no\nway"});
  failing.start();
  CHECK(fixture::error_of(scene.add()) ==
        "failed to get device plugin options: rpc error: code = INTERNAL desc = no\\nway");
  CHECK(scene.group() == nullptr);
}

TEST_CASE("ten thousand devices are taken; a plugin that tells too many, or garbage, is not listened to any more") {
  Scene scene;
  FakePlugin plugin{scene.directory / "gpu.sock"};
  std::vector<::v1beta1::Device> many;
  for (int i = 0; i < 10'000; ++i) many.push_back(plugin_device("device-" + std::to_string(i), {i % 2}));
  plugin.tell(many);
  plugin.start();
  REQUIRE(scene.add().has_value());
  CHECK(test::run_until(scene.reactor,
                        [&] { return scene.group() != nullptr && scene.group()->healthy.size() == 10'000; }));
  for (std::size_t i = many.size(); i <= most_devices; ++i) many.push_back(plugin_device("more-" + std::to_string(i)));
  plugin.tell(many);
  CHECK(test::run_until(scene.reactor, [&] { return scene.group()->healthy.empty(); }));

  plugin.tell({plugin_device("\x1b[2J")});
  REQUIRE(scene.add().has_value());
  CHECK(test::run_until(scene.reactor, [&] {
    const auto calls = plugin.calls();
    return std::ranges::count(calls, "ListAndWatch") == 2;
  }));
  CHECK(scene.group()->healthy.empty());
}

TEST_CASE("all resources together have a limit of devices, beyond which a plugin is not listened to any more") {
  Scene scene;
  std::vector<::v1beta1::Device> many;
  for (std::size_t i = 0; i < most_devices; ++i) many.push_back(plugin_device(std::to_string(i)));
  std::vector<std::unique_ptr<FakePlugin>> plugins;
  const auto serve = [&](const std::string& name, const std::vector<::v1beta1::Device>& devices) {
    auto& plugin = *plugins.emplace_back(std::make_unique<FakePlugin>(scene.directory / (name + ".sock")));
    plugin.tell(devices);
    plugin.start();
    REQUIRE(scene.add("example.com/" + name, name + ".sock").has_value());
  };
  for (const std::string name : {"a", "b", "c", "d"}) {
    serve(name, many);
    REQUIRE(test::run_until(scene.reactor,
                            [&] { return scene.group("example.com/" + name)->healthy.size() == most_devices; }));
  }
  serve("e", {plugin_device("one more")});
  const auto allocate = [&] {
    return test::run(scene.reactor, scene.plugins->allocate("example.com/e", {"one more"}));
  };
  CHECK(test::run_until(scene.reactor, [&] { return fixture::error_of(allocate()).ends_with("has been stopped"); }));
  CHECK(scene.group("example.com/e")->places.empty());
  CHECK(scene.group("example.com/d")->healthy.size() == most_devices);

  // Another list of the same resource takes the place of the one before.
  plugins[3]->tell({plugin_device("0")});
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.group("example.com/d")->healthy.size() == 1; }));
  REQUIRE(scene.add("example.com/e", "e.sock").has_value());
  CHECK(test::run_until(scene.reactor, [&] { return scene.group("example.com/e")->healthy.size() == 1; }));
}

TEST_CASE("a plugin is asked what it prefers where it says that it does, and told of a start where it wants to be") {
  const admission::DeviceQuestion question{
      .container = "main", .resource = gpu, .available = {"a", "b", "c"}, .must_include = {"a"}, .size = 2};
  for (const bool wants : {false, true}) {
    Scene scene;
    FakePlugin plugin{scene.directory / "gpu.sock"};
    plugin.set_options(wants, wants);
    plugin.start();
    REQUIRE(scene.add().has_value());
    CHECK(scene.plugins->has_preferences(gpu) == wants);
    const auto ids = fixture::value_of(test::run(scene.reactor, scene.plugins->prefer(question)));
    CHECK(ids == (wants ? std::set<std::string>{"b", "c"} : std::set<std::string>{}));
    CHECK(test::run(scene.reactor, scene.plugins->pre_start(gpu, {"a", "b"})).has_value());
    CHECK(plugin.was_called("PreStartContainer a b") == wants);

    plugin.fail("GetPreferredAllocation", {grpc::StatusCode::INTERNAL, "no"});
    plugin.fail("PreStartContainer", {grpc::StatusCode::INTERNAL, "no"});
    CHECK(test::run(scene.reactor, scene.plugins->prefer(question)).has_value() != wants);
    CHECK(test::run(scene.reactor, scene.plugins->pre_start(gpu, {"a"})).has_value() != wants);
  }
}

TEST_CASE("a plugin that prefers more devices than it was asked for is in the wrong") {
  Scene scene;
  FakePlugin plugin{scene.directory / "gpu.sock"};
  plugin.set_options(false, true);
  plugin.on_prefer([](const auto&, ::v1beta1::PreferredAllocationResponse& response) {
    auto& answer = *response.add_container_responses();
    for (const char* id : {"a", "b"}) answer.add_deviceids(id);
    return grpc::Status::OK;
  });
  plugin.start();
  REQUIRE(scene.add().has_value());
  const auto prefer = [&](std::int64_t size) {
    return test::run(
        scene.reactor,
        scene.plugins->prefer({.container = "main", .resource = gpu, .available = {"a", "b", "c"}, .size = size}));
  };
  CHECK(fixture::value_of(prefer(2)) == std::set<std::string>{"a", "b"});
  CHECK(fixture::error_of(prefer(1)) == "2 devices are preferred, and 1 were asked for");
}

TEST_CASE("Allocate is answered by the plugin, in the kubelet's words where it fails") {
  Scene scene;
  FakePlugin plugin{scene.directory / "gpu.sock"};
  plugin.start();
  const auto allocate = [&] { return test::run(scene.reactor, scene.plugins->allocate(gpu, {"a", "b"})); };
  CHECK(fixture::error_of(allocate()) == "unknown Device Plugin example.com/gpu");
  REQUIRE(scene.add().has_value());
  CHECK(fixture::value_of(allocate()) == admission::DeviceEdits{.environment = {{"DEVICES", "a b"}}});
  plugin.on_allocate([](const auto&, auto&) { return grpc::Status::OK; });
  CHECK(fixture::error_of(allocate()) == "no containers return in allocation response");
  plugin.fail("Allocate", {grpc::StatusCode::INTERNAL, "no way"});
  CHECK(fixture::error_of(allocate()) == "rpc error: code = INTERNAL desc = no way");
  plugin.stop();
  REQUIRE(test::run_until(scene.reactor, [&] { return fixture::error_of(allocate()).ends_with("has been stopped"); }));
  // A container that has its devices starts without the plugin, which wants to hear of no start.
  CHECK(test::run(scene.reactor, scene.plugins->pre_start(gpu, {"a"})).has_value());
  CHECK(test::run(scene.reactor, scene.plugins->pre_start("example.com/never-seen", {"a"})).has_value());
}

TEST_CASE("a plugin that hangs in Allocate is given up; others are asked meanwhile") {
  Scene scene;
  scene.plugins.emplace(
      scene.reactor.get_executor(),
      PluginsOptions{.directory = scene.directory.path().native(), .patience = 60s, .longest_call = 200ms});
  FakePlugin hanging{scene.directory / "gpu.sock"};
  hanging.hang("Allocate");
  hanging.start();
  REQUIRE(scene.add().has_value());
  CHECK(fixture::error_of(test::run(scene.reactor, scene.plugins->allocate(gpu, {"a"}))) ==
        "rpc error: code = DEADLINE_EXCEEDED desc = no answer within 200ms");

  Scene patient;
  FakePlugin still_hanging{patient.directory / "gpu.sock"};
  FakePlugin quick{patient.directory / "nic.sock"};
  still_hanging.hang("Allocate");
  still_hanging.start();
  quick.start();
  REQUIRE(patient.add().has_value());
  REQUIRE(patient.add("example.com/nic", "nic.sock").has_value());
  bool ended = false;
  boost::asio::co_spawn(patient.reactor, patient.plugins->allocate(gpu, {"a"}),
                        [&](const std::exception_ptr&, const auto&) { ended = true; });
  REQUIRE(test::run_until(patient.reactor, [&] { return still_hanging.was_called("Allocate a"); }));
  CHECK(test::run(patient.reactor, patient.plugins->allocate("example.com/nic", {"n"})).has_value());
  CHECK_FALSE(ended);
  still_hanging.stop();
  CHECK(test::run_until(patient.reactor, [&] { return ended; }));
}

TEST_CASE("a plugin whose server takes no more calls over a connection is asked over another, or has gone") {
  Scene scene;
  FakePlugin plugin{scene.directory / "gpu.sock"};
  plugin.limit_connections(1s);
  plugin.tell({plugin_device("a", {0}), plugin_device("b", {1})});
  plugin.start();
  REQUIRE(scene.add().has_value());
  REQUIRE(scene.comes_to_have(two));
  SUBCASE("it takes another") {
    const auto listened_to = [&] { return std::ranges::count(plugin.calls(), "ListAndWatch"); };
    SUBCASE("and calls that are made now, too") {
      CHECK(test::run_until(scene.reactor, [&] { return listened_to() >= 3; }));
      CHECK(*scene.group() == two);
      CHECK(test::run_until(scene.reactor,
                            [&] { return test::run(scene.reactor, scene.plugins->allocate(gpu, {"a"})).has_value(); }));
    }
    SUBCASE("and goes on with what it has begun") {
      plugin.hang("Allocate");
      std::optional<bool> allocated;
      boost::asio::co_spawn(scene.reactor, scene.plugins->allocate(gpu, {"a"}),
                            [&](const std::exception_ptr&, const auto& result) { allocated = result.has_value(); });
      CHECK(test::run_until(scene.reactor, [&] { return plugin.was_called("Allocate a") && listened_to() >= 2; }));
      plugin.go_on("Allocate");
      CHECK(test::run_until(scene.reactor, [&] { return allocated.has_value(); }));
      CHECK(allocated == true);
    }
  }
  SUBCASE("it takes none") {
    std::filesystem::remove(scene.directory / "gpu.sock");
    CHECK(scene.comes_to_have(two_lost));
  }
}

TEST_CASE("resources of the configuration, and those that are none of plugins, are no plugin's") {
  Scene scene;
  CHECK(scene.plugins->is_of_plugins(gpu));
  CHECK_FALSE(scene.plugins->is_of_plugins("example.com/configured"));
  CHECK_FALSE(scene.plugins->is_of_plugins("cpu"));
}

TEST_CASE("what is under way when it ends ends with it") {
  Scene scene;
  FakePlugin plugin{scene.directory / "gpu.sock"};
  plugin.hang("GetDevicePluginOptions");
  plugin.start();
  std::optional<Result<void>> result;
  boost::asio::co_spawn(scene.reactor, scene.plugins->add({.resource = gpu, .endpoint = "gpu.sock"}),
                        [&](const std::exception_ptr&, Result<void> given) { result = std::move(given); });
  REQUIRE(test::run_until(scene.reactor, [&] { return plugin.was_called("GetDevicePluginOptions"); }));
  scene.plugins.reset();
  CHECK(test::run_until(scene.reactor, [&] { return result.has_value(); }));
  CHECK_FALSE(result->has_value());
}

}  // namespace evictd::devices::plugins_test
