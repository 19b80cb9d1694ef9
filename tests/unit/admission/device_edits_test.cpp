#include "admission/device_edits.hpp"

#include <doctest/doctest.h>

#include <string>

namespace evictd::admission::device_edits_test {

TEST_CASE("what several plugins say of a container is put together; where they differ the first holds") {
  DeviceEdits edits{.environment = {{"A", "1"}},
                    .mounts = {{.container_path = "/lib", .host_path = "/host/lib"}},
                    .devices = {{.container_path = "/dev/a", .host_path = "/dev/a0", .permissions = "rw"}},
                    .annotations = {{"a", "1"}},
                    .cdi_devices = {"v/c=0"}};
  add_edits(edits, {.environment = {{"A", "2"}, {"B", "2"}},
                    .mounts = {{.container_path = "/lib", .host_path = "/other"},
                               {.container_path = "/etc/b", .host_path = "/b", .read_only = true}},
                    .devices = {{.container_path = "/dev/a", .host_path = "/dev/null", .permissions = "r"},
                                {.container_path = "/dev/b", .host_path = "/dev/b0", .permissions = "r"}},
                    .annotations = {{"a", "2"}, {"b", "2"}},
                    .cdi_devices = {"v/c=0", "v/c=1"}});
  CHECK(edits == DeviceEdits{.environment = {{"A", "1"}, {"B", "2"}},
                             .mounts = {{.container_path = "/lib", .host_path = "/host/lib"},
                                        {.container_path = "/etc/b", .host_path = "/b", .read_only = true}},
                             .devices = {{.container_path = "/dev/a", .host_path = "/dev/a0", .permissions = "rw"},
                                         {.container_path = "/dev/b", .host_path = "/dev/b0", .permissions = "r"}},
                             .annotations = {{"a", "1"}, {"b", "2"}},
                             .cdi_devices = {"v/c=0", "v/c=1"}});
}

TEST_CASE("what it takes to keep them grows with their texts and with their number") {
  CHECK(size_of({}) == 0);
  CHECK(size_of({.environment = {{"A", "12"}}}) == 67);
  CHECK(size_of({.environment = {{"A", "1"}, {"B", "2"}},
                 .mounts = {{.container_path = "/a", .host_path = "/bc"}},
                 .devices = {{.container_path = "/a", .host_path = "/bc", .permissions = "rw"}},
                 .annotations = {{"a", "1"}},
                 .cdi_devices = {"v/c=0"}}) == 6 * 64 + 2 * 2 + 5 + 7 + 2 + 5);
}

TEST_CASE("of paths that one plugin says twice the first holds, and 200,000 are put together in a moment") {
  DeviceEdits many;
  for (int i = 0; i < 200'000; ++i) many.mounts.push_back({.container_path = std::to_string(i / 2), .host_path = ""});
  DeviceEdits edits{.mounts = {{.container_path = "1", .host_path = "/first"}}};
  add_edits(edits, many);
  REQUIRE(edits.mounts.size() == 100'000);
  CHECK(edits.mounts[0].host_path == "/first");
  CHECK(edits.mounts[1].container_path == "0");
  CHECK(edits.mounts[2].container_path == "2");
}

}  // namespace evictd::admission::device_edits_test
