#include "admission/allocation/device_manager.hpp"

#include <doctest/doctest.h>

#include "fixture/machines.hpp"

namespace evictd::admission::device_manager_test {
namespace {

using namespace fixture;

const NumaMask two{NumaNodes{0, 1}};

/// Two on each node, one of them on both, and one that lies nowhere.
std::vector<Device> gpus() {
  return {{.resource = "gpu", .id = "a0", .numa_nodes = {0}},
          {.resource = "gpu", .id = "b1", .numa_nodes = {1}},
          {.resource = "gpu", .id = "c01", .numa_nodes = {0, 1}},
          {.resource = "gpu", .id = "d"}};
}

std::expected<PodAllocation, Refusal> allocate(const DeviceManager& manager, const core::Pod& pod,
                                               const Allocations& others = {}, const Hint& hint = {}) {
  const auto round = manager.begin(pod, others);
  for (const auto& turn : turns(pod))
    if (auto given = round->allocate(turn, hint); !given) return std::unexpected(given.error());
  PodAllocation result;
  round->hand_over(result);
  return result;
}

core::Pod wants(std::string_view count) { return pod("a", {wanting(container("main"), "gpu", count)}); }

DeviceManager::Ids given(const DeviceManager& manager, std::string_view count, const Hint& hint = {}) {
  return allocate(manager, wants(count), {}, hint).value().at("main").devices.at("gpu");
}

std::expected<DeviceManager::Ids, Refusal> given_by(const DeviceManager& manager, const PluginDevices& plugins,
                                                    std::string_view count, const Allocations& others = {},
                                                    const Hint& hint = {}) {
  const auto asking = wants(count);
  const auto round = manager.begin(asking, others, plugins);
  if (auto allocated = round->allocate(turns(asking)[0], hint); !allocated) return std::unexpected(allocated.error());
  PodAllocation result;
  round->hand_over(result);
  return result["main"].devices["gpu"];
}

/// A plugin that always wants the same.
struct Wish final : DevicePreference {
  [[nodiscard]] Result<std::set<std::string>> preferred(const std::string& /*container*/,
                                                        const std::string& /*resource*/,
                                                        const MakeQuestion& question) override {
    questions.push_back(question());
    if (error) return std::unexpected(*error);
    return ids;
  }

  std::set<std::string> ids;
  std::optional<Error> error;
  std::vector<DeviceQuestion> questions;
};

Hint yes(NumaNodes nodes) { return {.affinity = NumaMask{nodes}, .preferred = true}; }
Hint no(NumaNodes nodes) { return {.affinity = NumaMask{nodes}, .preferred = false}; }

}  // namespace

TEST_CASE("a device may be named once") {
  auto devices = gpus();
  devices.push_back(devices.front());
  CHECK(error_of(DeviceManager::make(devices, two)) == "device a0 of gpu is named twice");
}

TEST_CASE("a device lies where there is a NUMA node") {
  const auto on = [](int node) {
    return std::vector<Device>{{.resource = "gpu", .id = "g0", .numa_nodes = {0, node}}};
  };
  CHECK(error_of(DeviceManager::make(on(1), two)) == "no error");
  CHECK(error_of(DeviceManager::make(on(5), two)) ==
        "device g0 of gpu lies on NUMA node 5, which this machine does not have");
  CHECK(error_of(DeviceManager::make(on(64), two)) ==
        "device g0 of gpu lies on NUMA node 64, which this machine does not have");
  CHECK(error_of(DeviceManager::make(on(5), {})) == "no error");  // of this machine nothing is known
}

TEST_CASE("devices near the affinity come first, then others, then those that lie nowhere") {
  const DeviceManager manager{gpus(), two};
  using Ids = DeviceManager::Ids;
  CHECK(given(manager, "1") == Ids{"a0"});
  CHECK(given(manager, "1", yes({1})) == Ids{"b1"});
  CHECK(given(manager, "2", yes({1})) == Ids{"b1", "c01"});
  CHECK(given(manager, "3", yes({1})) == Ids{"a0", "b1", "c01"});
  CHECK(given(manager, "4", yes({1})) == Ids{"a0", "b1", "c01", "d"});
  CHECK(allocate(manager, wants("0")).value().empty());
  CHECK(allocate(manager, pod("a")).value().empty());
}

TEST_CASE("more devices than are free are refused in the kubelet's words") {
  const DeviceManager manager{gpus(), two};
  const Allocations others{{"other", {{"main", {.devices = {{"gpu", {"a0", "gone"}}}}}}}};
  CHECK(allocate(manager, wants("4"), others).error() ==
        Refusal{.reason = "UnexpectedAdmissionError",
                .message = "Allocate failed due to requested number of devices unavailable for gpu. Requested: 4, "
                           "Available: 3, which is unexpected"});
}

TEST_CASE("hints name the nodes that have the devices; those that lie nowhere are in none") {
  const DeviceManager manager{gpus(), two};
  const auto hints = [&](std::string_view count) { return manager.begin(wants(count), {})->pod_hints().at("gpu"); };
  CHECK(hints("1") == std::vector{yes({0}), yes({1}), no({0, 1})});
  CHECK(hints("2") == std::vector{yes({0}), yes({1}), no({0, 1})});
  CHECK(hints("3") == std::vector{yes({0, 1})});
  CHECK(hints("4") == std::vector<Hint>{});
  const Allocations others{{"other", {{"main", {.devices = {{"gpu", {"a0"}}}}}}}};
  CHECK(manager.begin(wants("2"), others)->hints(turns(wants("2"))[0]).at("gpu") == std::vector{yes({1}), no({0, 1})});

  const DeviceManager anywhere{{{.resource = "gpu", .id = "d"}}, two};
  CHECK_FALSE(anywhere.begin(wants("1"), {})->pod_hints().at("gpu").has_value());
  CHECK(manager.begin(pod("a"), {})->pod_hints().empty());
}

TEST_CASE("hints are sets of the nodes that have devices of the resource, given away or not") {
  NumaNodes all;
  for (int node = 0; node < 40; ++node) all.insert(node);
  // More than 2^40 sets of nodes if those without devices counted.
  const DeviceManager manager{{{.resource = "gpu", .id = "a", .numa_nodes = {3}},
                               {.resource = "gpu", .id = "b", .numa_nodes = {17, 60}},
                               {.resource = "gpu", .id = "c"},
                               {.resource = "nic", .id = "d", .numa_nodes = {5}}},
                              NumaMask{all}};
  const auto hints = [&](std::string_view count, const Allocations& others = {}) {
    return manager.begin(wants(count), others)->pod_hints().at("gpu");
  };
  CHECK(hints("1") == std::vector{yes({3}), yes({17}), no({3, 17})});
  CHECK(hints("2") == std::vector{yes({3, 17})});
  CHECK(hints("3") == std::vector<Hint>{});
  const Allocations others{{"other", {{"main", {.devices = {{"gpu", {"a"}}}}}}}};
  CHECK(hints("1", others) == std::vector{yes({17}), no({3, 17})});
}

TEST_CASE("what init containers had is used again first; a sidecar's is not") {
  const DeviceManager manager{gpus(), two};
  auto asking = with_init(
      wants("2"), {wanting(container("first"), "gpu", "2"), as_sidecar(wanting(container("beside"), "gpu", "1"))});
  const auto result = allocate(manager, asking).value();
  CHECK(result.at("first").devices.at("gpu") == DeviceManager::Ids{"a0", "b1"});
  CHECK(result.at("beside").devices.at("gpu") == DeviceManager::Ids{"a0"});
  CHECK(result.at("main").devices.at("gpu") == DeviceManager::Ids{"b1", "c01"});
}

TEST_CASE("a plugin's healthy devices are given like configured ones, and its others are not") {
  const DeviceManager manager{{}, two};
  PluginDevices plugins;
  plugins.groups["gpu"] = std::make_shared<const DeviceGroup>(DeviceGroup{
      .places = {{"a0", NumaMask{1}}, {"b1", NumaMask{2}}, {"c", {}}, {"d1", NumaMask{2}}}, .healthy = {"a0", "b1"}});
  using Ids = DeviceManager::Ids;
  CHECK(given_by(manager, plugins, "1").value() == Ids{"a0"});
  CHECK(given_by(manager, plugins, "1", {}, yes({1})).value() == Ids{"b1"});
  CHECK(error_of(given_by(manager, plugins, "3")) ==
        "Allocate failed due to requested number of devices unavailable for gpu. Requested: 3, Available: 2, which is "
        "unexpected");
  // Where devices lie counts, whether they are healthy or not.
  CHECK(manager.begin(wants("1"), {}, plugins)->pod_hints().at("gpu") == std::vector{yes({0}), yes({1}), no({0, 1})});

  plugins.groups["gpu"] = std::make_shared<const DeviceGroup>(DeviceGroup{.places = {{"a0", {}}}});
  CHECK(
      error_of(given_by(manager, plugins, "1")) ==
      "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices gpu, which is unexpected");
}

TEST_CASE("devices of which nobody knows are the predicates' affair, unless pods have some") {
  const DeviceManager manager{{}, two};
  CHECK(given_by(manager, {}, "1").value().empty());
  CHECK(manager.begin(wants("1"), {})->pod_hints().empty());
  const Allocations others{{"other", {{"main", {.devices = {{"gpu", {"a0"}}}}}}}};
  CHECK(error_of(given_by(manager, {}, "1", others)) ==
        "Allocate failed due to cannot allocate unregistered device gpu, which is unexpected");
  CHECK(manager.begin(wants("1"), others)->pod_hints().empty());
}

TEST_CASE("a configured resource stays the configuration's") {
  PluginDevices plugins;
  plugins.groups["gpu"] = std::make_shared<const DeviceGroup>(DeviceGroup{.places = {{"z", {}}}, .healthy = {"z"}});
  CHECK(given_by(DeviceManager{gpus(), two}, plugins, "1").value() == DeviceManager::Ids{"a0"});
}

TEST_CASE("of devices that are equal to the topology policy the ones are given that the plugin prefers") {
  const DeviceManager manager{{}, two};
  Wish wish;
  PluginDevices plugins{.preference = &wish};
  plugins.groups["gpu"] = std::make_shared<const DeviceGroup>(
      DeviceGroup{.places = {{"a", NumaMask{1}}, {"b", NumaMask{1}}, {"c", NumaMask{1}}, {"d", NumaMask{2}}},
                  .healthy = {"a", "b", "c", "d"}});
  using Ids = DeviceManager::Ids;
  const auto asked = [](Ids available, Ids must_include, std::int64_t size) {
    return DeviceQuestion{.container = "main",
                          .resource = "gpu",
                          .available = std::move(available),
                          .must_include = std::move(must_include),
                          .size = size};
  };

  wish.ids = {"c", "d"};
  CHECK(given_by(manager, plugins, "2", {}, yes({0})).value() == Ids{"a", "c"});  // d lies elsewhere
  CHECK(wish.questions == std::vector{asked({"a", "b", "c"}, {}, 2)});
  // All near ones are needed: the rest is the plugin's choice of all.
  wish.questions.clear();
  CHECK(given_by(manager, plugins, "1", {}, yes({1})).value() == Ids{"d"});
  CHECK(wish.questions.empty());
  CHECK(given_by(manager, plugins, "2", {}, yes({1})).value() == Ids{"c", "d"});
  CHECK(wish.questions == std::vector{asked({"a", "b", "c", "d"}, {"d"}, 2)});
  // Without a policy.
  wish.ids = {"nonsense", "b"};
  CHECK(given_by(manager, plugins, "1").value() == Ids{"b"});
  wish.ids = {};
  CHECK(given_by(manager, plugins, "1").value() == Ids{"a"});
  wish.error = Error{"it failed"};
  CHECK(error_of(given_by(manager, plugins, "1")) == "Allocate failed due to it failed, which is unexpected");
  // A configured resource has no plugin.
  CHECK(given_by(DeviceManager{gpus(), two}, plugins, "1").value() == Ids{"a0"});
}

TEST_CASE("a pod with hundreds of limits on plugins' devices is refused before any plugin is asked") {
  const DeviceManager manager{{}, two};
  DeviceGroup group;
  for (int i = 0; i < 300; ++i) group.healthy.insert(std::to_string(i));
  Wish wish;
  PluginDevices plugins{.preference = &wish};
  plugins.groups["gpu"] = std::make_shared<const DeviceGroup>(group);
  const auto refusal = [&](int containers) {
    auto asking = pod("a");
    asking.containers.clear();
    for (int i = 0; i < containers; ++i)
      asking.containers.push_back(wanting(container("c" + std::to_string(i)), "gpu", "1"));
    return error_of(manager.begin(asking, {}, plugins)->allocate(turns(asking)[0], {}));
  };
  CHECK(refusal(257) ==
        "Allocate failed due to the pod's 257 limits on devices of plugins, of which at most 256 are taken, which is "
        "unexpected");
  CHECK(wish.questions.empty());
  CHECK(refusal(256) == "no error");
}

TEST_CASE("a device that two pods have is told, one that is gone is not") {
  const DeviceManager manager{gpus(), two};
  const ContainerAllocation one{.devices = {{"gpu", {"a0", "gone"}}}};
  CHECK(manager.check({{"a", {{"main", one}, {"init", one}}}}).has_value());
  CHECK(error_of(manager.check({{"a", {{"main", one}}}, {"b", {{"main", one}}}})) ==
        "device a0 of gpu of pod b belongs to pod a");
}

}  // namespace evictd::admission::device_manager_test
