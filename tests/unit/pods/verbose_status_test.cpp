#include "pods/verbose_status.hpp"

#include <doctest/doctest.h>

#include "pods/verbose_fixtures.hpp"

namespace evictd::pods::verbose_status_test {

using namespace evictd;
using pods::LinuxResources;
using pods::parse_container_info;
using pods::parse_runtime_info;
using pods::parse_sandbox_info;

namespace {

template <class T>
std::string complaint(const Result<T>& result) {
  return result ? "" : result.error().message;
}

}  // namespace

TEST_CASE("the verbose status of a running container gives its process, its resources and its cgroup") {
  const auto info = parse_container_info(test::burstable_container_info);
  REQUIRE(info);
  CHECK(info->pid == 6524);
  CHECK(info->resources == LinuxResources{.memory_limit = 64 << 20, .oom_score_adj = 968, .cpu_shares = 102});
  CHECK(info->cgroups_path ==
        "/kubepods/burstable/pod0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11/"
        "691c8360e743a6e922fb2cbd382e5157d4fff999f8b26ef4c2f88ff6a1e1e906");
}

TEST_CASE("the oom_score_adj is the one asked for, not the one the machine allowed") {
  const auto info = parse_container_info(test::guaranteed_container_info);
  REQUIRE(info);
  CHECK(info->resources == LinuxResources{.memory_limit = 64 << 20,
                                          .oom_score_adj = -997,
                                          .cpu_shares = 512,
                                          .cpu_quota = 50'000,
                                          .cpu_period = 100'000});
}

TEST_CASE("the verbose status of a sandbox gives the pod's cgroup parent") {
  const auto info = parse_sandbox_info(test::sandbox_info);
  REQUIRE(info);
  CHECK(info->cgroup_parent == "/kubepods/burstable/pod0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11");
}

TEST_CASE("the verbose status of a sandbox gives the ports of the node that it takes") {
  const auto info = parse_sandbox_info(
      R"({"config":{"port_mappings":[{"container_port":80,"host_port":8080},)"
      R"({"protocol":1,"container_port":53,"host_port":53,"host_ip":"10.0.0.1"},{"protocol":2,"host_port":65535},)"
      R"({"container_port":90}]}})");
  REQUIRE(info);
  CHECK(info->host_ports == std::vector<core::HostPort>{{.port = 8080},
                                                        {.ip = "10.0.0.1", .protocol = "UDP", .port = 53},
                                                        {.protocol = "SCTP", .port = 65'535}});
}

TEST_CASE("ports that no node has are none, and a protocol that nobody knows is TCP") {
  const auto info = parse_sandbox_info(
      R"({"config":{"port_mappings":[{"host_port":-1},{"host_port":65536},{"host_port":9223372036854775807},null,7,)"
      R"({"protocol":-1,"host_port":80},{"protocol":3,"host_port":80}]}})");
  REQUIRE(info);
  CHECK(info->host_ports == std::vector<core::HostPort>{{.port = 80}, {.port = 80}});
}

TEST_CASE("thousands of ports are read") {
  std::string mappings;
  for (int i = 0; i < 50'000; ++i) mappings += R"({"host_port":8080},)";
  const auto info = parse_sandbox_info(R"({"config":{"port_mappings":[)" + mappings + "{}]}}");
  REQUIRE(info);
  CHECK(info->host_ports.size() == 50'000);
}

TEST_CASE("the verbose status of the runtime gives the image of the sandboxes") {
  const auto info = parse_runtime_info(
      R"({"containerd":{"snapshotter":"overlayfs"},"sandboxImage":"registry.k8s.io/pause:3.6","statsCollectPeriod":10})");
  REQUIRE(info);
  CHECK(info->sandbox_image == "registry.k8s.io/pause:3.6");
}

TEST_CASE("what the runtime leaves out is not given") {
  CHECK(parse_runtime_info("{}") == pods::RuntimeInfo{});
  CHECK(parse_container_info("{}") == pods::ContainerInfo{});
  CHECK(parse_container_info(R"({"pid":0,"config":null,"runtimeSpec":null})") == pods::ContainerInfo{});
  CHECK(parse_container_info(R"({"pid":7,"config":{}})") ==
        pods::ContainerInfo{.pid = 7, .resources = LinuxResources{}});
  CHECK(parse_sandbox_info("{}") == pods::SandboxInfo{});
  CHECK(parse_sandbox_info(R"({"config":{"linux":{}}})") == pods::SandboxInfo{});
}

TEST_CASE("text that is not one JSON object is an error in one line") {
  const auto half = test::burstable_container_info.substr(0, test::burstable_container_info.size() / 2);
  const std::string endless(100'000, '[');
  for (const std::string_view text :
       {std::string_view{}, std::string_view{"{"}, std::string_view{"[]"}, std::string_view{"null"},
        std::string_view{"{} {}"}, std::string_view{"{\"pid\":\"\xff\"}"}, half, std::string_view{endless}}) {
    CAPTURE(text.substr(0, 40));
    for (const auto& error : {complaint(parse_container_info(text)), complaint(parse_sandbox_info(text)),
                              complaint(parse_runtime_info(text))}) {
      CHECK(error.starts_with("verbose status is not"));
      CHECK(error.find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("nesting has a bound, and what containerd nests is far below it") {
  const auto nested = [](int depth) {
    return R"({"runtimeSpec":)" + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']') + "}";
  };
  CHECK(parse_container_info(nested(20)));
  CHECK_FALSE(parse_container_info(nested(40)));
}

TEST_CASE("a value of the wrong type is an error that names its place") {
  CHECK(complaint(parse_container_info(R"({"pid":"6524"})")) ==
        "verbose status: /pid is not a whole number of 64 bits");
  CHECK(complaint(parse_container_info(R"({"pid":1e30})")) == "verbose status: /pid is not a whole number of 64 bits");
  CHECK(complaint(parse_container_info(R"({"pid":6524.5})")) ==
        "verbose status: /pid is not a whole number of 64 bits");
  CHECK(complaint(parse_container_info(R"({"config":{"linux":{"resources":{"memory_limit_in_bytes":"64Mi"}}}})")) ==
        "verbose status: /config/linux/resources/memory_limit_in_bytes is not a whole number of 64 bits");
  CHECK(complaint(parse_container_info(R"({"runtimeSpec":{"linux":{"cgroupsPath":5}}})")) ==
        "verbose status: /runtimeSpec/linux/cgroupsPath is not a string");
  CHECK(complaint(parse_sandbox_info(R"({"config":{"linux":{"cgroup_parent":[]}}})")) ==
        "verbose status: /config/linux/cgroup_parent is not a string");
  CHECK(complaint(parse_sandbox_info(R"({"config":{"port_mappings":{}}})")) ==
        "verbose status: /config/port_mappings is not a list");
  CHECK(complaint(parse_sandbox_info(R"({"config":{"port_mappings":[{},{"host_port":"80"}]}})")) ==
        "verbose status: /config/port_mappings/1/host_port is not a whole number of 64 bits");
  CHECK(complaint(parse_runtime_info(R"({"sandboxImage":3.6})")) == "verbose status: /sandboxImage is not a string");
}

}  // namespace evictd::pods::verbose_status_test
