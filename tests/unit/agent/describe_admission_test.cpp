#include "agent/describe_admission.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "fixture/pods.hpp"

namespace evictd::agent::describe_admission_test {

TEST_CASE("a rejection names the handler, those before it, and those that were not asked") {
  const admission::Decision decision{
      .verdict = admission::Verdict::reject("Reason", "message"), .handler = "second", .admitted_by = {"first"}};
  const auto answer = describe_decision(fixture::pod("a"), decision, {"first", "second", "third"});
  CHECK(answer.pod().uid() == "a");
  CHECK_FALSE(answer.admitted());
  CHECK(answer.reason() == "Reason");
  CHECK(answer.message() == "message");
  REQUIRE(answer.handlers_size() == 3);
  CHECK(answer.handlers(0).verdict() == "admitted");
  CHECK(answer.handlers(1).verdict() == "rejected");
  CHECK(answer.handlers(2).verdict() == "not asked");
}

TEST_CASE("an admission says who has to go, and what is given") {
  admission::Decision decision{.verdict = admission::Verdict::admit(), .admitted_by = {"only"}};
  decision.verdict.preempted.push_back(std::make_shared<const core::Pod>(fixture::pod("b")));
  decision.verdict.allocation["main"].cpus = {1, 2, 5};
  const auto answer = describe_decision(fixture::pod("a"), decision, {"only"});
  CHECK(answer.admitted());
  REQUIRE(answer.preempted_size() == 1);
  CHECK(answer.preempted(0).uid() == "b");
  REQUIRE(answer.allocations_size() == 1);
  CHECK(answer.allocations(0).container() == "main");
  CHECK(answer.allocations(0).cpus() == "1-2,5");
}

TEST_CASE("of a resize that is rejected it is told whether it may be asked about again") {
  admission::Decision decision{.verdict = admission::Verdict::reject(admission::deferred_resize, "message"),
                               .operation = admission::Operation::Resize};
  const auto told = [&] { return describe_decision(fixture::pod("a"), decision, {}).resize(); };
  CHECK(told() == v1::AdmitResponse::RESIZE_DEFERRED);
  decision.verdict.reason = admission::infeasible_resize;
  CHECK(told() == v1::AdmitResponse::RESIZE_INFEASIBLE);
  decision.operation = admission::Operation::Add;
  CHECK(told() == v1::AdmitResponse::RESIZE_NOT_PENDING);
  decision = {.verdict = admission::Verdict::admit(), .operation = admission::Operation::Resize};
  CHECK(told() == v1::AdmitResponse::RESIZE_NOT_PENDING);
}

TEST_CASE("what a container is given is told whole, with what its plugins want it to have") {
  const auto message = describe_allocation(
      "main", {.memory = {{.numa_nodes = {0, 1}, .type = "memory", .bytes = 1 << 30}},
               .devices = {{"example.com/gpu", {"a", "b"}}},
               .edits = admission::DeviceEdits{
                   .environment = {{"GPU", "a b"}},
                   .mounts = {{.container_path = "/lib", .host_path = "/opt", .read_only = true}},
                   .devices = {{.container_path = "/dev/a", .host_path = "/dev/b", .permissions = "rw"}},
                   .annotations = {{"k", "v"}},
                   .cdi_devices = {"v/c=0"}}});
  CHECK(message.cpus().empty());
  REQUIRE(message.memory_size() == 1);
  CHECK(message.memory(0).numa_nodes() == "0-1");
  CHECK(message.memory(0).bytes() == 1 << 30);
  REQUIRE(message.devices_size() == 1);
  CHECK(message.devices(0).resource() == "example.com/gpu");
  CHECK(message.devices(0).ids_size() == 2);
  const auto& edits = message.edits();
  CHECK(edits.environment().at("GPU") == "a b");
  REQUIRE(edits.mounts_size() == 1);
  CHECK(edits.mounts(0).host_path() == "/opt");
  CHECK(edits.mounts(0).read_only());
  REQUIRE(edits.devices_size() == 1);
  CHECK(edits.devices(0).container_path() == "/dev/a");
  CHECK(edits.devices(0).permissions() == "rw");
  CHECK(edits.annotations().at("k") == "v");
  REQUIRE(edits.cdi_devices_size() == 1);
  CHECK(edits.cdi_devices(0) == "v/c=0");
  CHECK_FALSE(describe_allocation("main", {}).has_edits());
}

}  // namespace evictd::agent::describe_admission_test
