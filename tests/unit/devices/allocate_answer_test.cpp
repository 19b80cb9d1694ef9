#include "devices/allocate_answer.hpp"

#include <deviceplugin.pb.h>
#include <doctest/doctest.h>

#include <string>

#include "fixture/result.hpp"

namespace evictd::devices::allocate_answer_test {

TEST_CASE("all that a plugin says of the container is taken over") {
  ::v1beta1::AllocateResponse message;
  auto& answer = *message.add_container_responses();
  (*answer.mutable_envs())["A"] = "1";
  (*answer.mutable_annotations())["a"] = "b";
  auto& mount = *answer.add_mounts();
  mount.set_container_path("/lib");
  mount.set_host_path("/host/lib");
  mount.set_read_only(true);
  for (const auto* host : {"/dev/a0", "/dev/twice"}) {
    auto& device = *answer.add_devices();
    device.set_container_path("/dev/a");
    device.set_host_path(host);
    device.set_permissions("rw");
  }
  answer.add_cdi_devices()->set_name("v/c=0");
  CHECK(fixture::value_of(read_allocate_answer(message)) ==
        admission::DeviceEdits{.environment = {{"A", "1"}},
                               .mounts = {{.container_path = "/lib", .host_path = "/host/lib", .read_only = true}},
                               .devices = {{.container_path = "/dev/a", .host_path = "/dev/a0", .permissions = "rw"}},
                               .annotations = {{"a", "b"}},
                               .cdi_devices = {"v/c=0"}});
}

TEST_CASE("no answer, and one that is too large to be kept, are errors") {
  ::v1beta1::AllocateResponse message;
  CHECK(fixture::error_of(read_allocate_answer(message)) == "no containers return in allocation response");
  (*message.add_container_responses()->mutable_envs())["A"] = std::string(longest_allocate_answer, 'x');
  CHECK(fixture::error_of(read_allocate_answer(message)).ends_with("at most 131072 are taken"));
}

TEST_CASE("an answer of many small edits is an error, too") {
  ::v1beta1::AllocateResponse message;
  auto& answer = *message.add_container_responses();
  (*answer.mutable_envs())["A"] = "1";
  (*answer.mutable_annotations())["a"] = "1";
  answer.add_devices()->set_container_path("/dev/a");
  answer.add_cdi_devices()->set_name("v/c=0");
  for (std::size_t i = 4; i < most_device_edits; ++i) answer.add_mounts()->set_container_path(std::to_string(i));
  CHECK(fixture::value_of(read_allocate_answer(message)).mounts.size() == most_device_edits - 4);
  answer.add_mounts();
  CHECK(fixture::error_of(read_allocate_answer(message)) ==
        "the allocation response has 1025 edits, and at most 1024 are taken");
}

}  // namespace evictd::devices::allocate_answer_test
