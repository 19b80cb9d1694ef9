#include "devices/device_list.hpp"

#include <doctest/doctest.h>

#include "devices/fake_plugin.hpp"
#include "fixture/result.hpp"

namespace evictd::devices::device_list_test {
namespace {

using admission::DeviceGroup;
using admission::NumaMask;
using test::plugin_device;

::v1beta1::ListAndWatchResponse list(const std::vector<::v1beta1::Device>& devices) {
  ::v1beta1::ListAndWatchResponse result;
  for (const auto& device : devices) *result.add_devices() = device;
  return result;
}

}  // namespace

TEST_CASE("devices have places and health; only the word Healthy is good") {
  auto odd = plugin_device("c");
  odd.set_health("healthy");
  CHECK(fixture::value_of(read_devices(list(
            {plugin_device("a", {0, 1}), plugin_device("b", {}, false), odd, plugin_device("d", {-1, 1 << 30})}))) ==
        DeviceGroup{.places = {{"a", NumaMask{3}}, {"b", {}}, {"c", {}}, {"d", {}}}, .healthy = {"a", "d"}});
  CHECK(fixture::value_of(read_devices(list({}))) == DeviceGroup{});
}

TEST_CASE("a device may name any number of NUMA nodes; those that no machine has are passed over") {
  std::vector<std::int64_t> nodes{63, 64, std::int64_t{1} << 32};
  for (int i = 1000; i < 100'000; ++i) nodes.push_back(i);
  CHECK(fixture::value_of(read_devices(list({plugin_device("a", nodes)}))) ==
        DeviceGroup{.places = {{"a", NumaMask::of(63)}}, .healthy = {"a"}});
}

TEST_CASE("of two devices with one id the later one counts") {
  CHECK(fixture::value_of(read_devices(list({plugin_device("a", {0}), plugin_device("a", {1}, false)}))) ==
        DeviceGroup{.places = {{"a", NumaMask{2}}}});
}

TEST_CASE("too many devices, and ids that are no line of text, are errors") {
  ::v1beta1::ListAndWatchResponse many;
  for (std::size_t i = 0; i < most_devices; ++i) *many.add_devices() = plugin_device(std::to_string(i));
  CHECK(fixture::value_of(read_devices(many)).healthy.size() == most_devices);
  *many.add_devices() = plugin_device("one more");
  CHECK(fixture::error_of(read_devices(many)) == "there are 16385 devices, and at most 16384 are taken");

  CHECK(fixture::error_of(read_devices(list({plugin_device("")}))) == "a device has no id");
  CHECK(fixture::error_of(read_devices(list({plugin_device(std::string(254, 'x'))}))) ==
        "a device's id has 254 bytes, and at most 253 are taken");
  CHECK(fixture::error_of(read_devices(list({plugin_device("a\nb")}))) == "\"a\\nb\" is no id of a device");
}

}  // namespace evictd::devices::device_list_test
