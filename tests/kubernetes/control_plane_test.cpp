#include "control_plane.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "testbed/process_table.hpp"

namespace kubernetes::control_plane_test {

TEST_CASE("the API server comes up, knows who asks, and keeps its objects over an outage") {
  ControlPlane control_plane;
  const auto& admin = control_plane.admin();
  CHECK(admin.get("/version").at("/gitVersion") == "v1.20.2");
  CHECK(control_plane.client("no such token").get("/api/v1/pods").status == 401);
  CHECK(control_plane.client(control_plane.node_token()).get("/api/v1/nodes").status == 200);
  CHECK(control_plane.client(control_plane.node_token()).get("/api/v1/namespaces").status == 403);

  const std::string maps = "/api/v1/namespaces/default/configmaps";
  CHECK(admin.create(maps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}, data: {a: b}}").status == 201);
  control_plane.stop_api_server();
  CHECK_FALSE(admin.try_send({.path = "/version"}).has_value());
  control_plane.start_api_server();
  CHECK(admin.get(maps + "/kept").at("/data/a") == "b");
}

TEST_CASE("nothing remains of a control plane that goes") {
  std::filesystem::path directory;
  {
    const ControlPlane control_plane;
    directory = control_plane.directory();
    CHECK(testbed::marked_processes(directory).size() == 2);
  }
  CHECK(testbed::marked_processes(directory).empty());
  CHECK_FALSE(std::filesystem::exists(directory));
}

}  // namespace kubernetes::control_plane_test
