#include "evictctl/answers.hpp"

#include <doctest/doctest.h>

#include <sstream>

namespace evictd::ctl::admit_table_test {
namespace {

v1::AdmitResponse answer(const std::string& pod, std::initializer_list<std::pair<const char*, const char*>> handlers) {
  v1::AdmitResponse answer;
  answer.mutable_pod()->set_namespace_("default");
  answer.mutable_pod()->set_name(pod);
  for (const auto& [name, verdict] : handlers) {
    answer.add_handlers()->set_handler(name);
    answer.mutable_handlers()->rbegin()->set_verdict(verdict);
  }
  return answer;
}

std::string printed(const v1::AdmitBatchResponse& reply) {
  std::ostringstream out;
  print_admission(out, reply, {.width = 80});
  return out.str();
}

TEST_CASE("a rejection stands beside the handler that it came from") {
  v1::AdmitBatchResponse reply;
  auto& rejected = *reply.add_answers();
  rejected = answer("a", {{"eviction", "admitted"}, {"predicates", "rejected"}, {"shutdown", "not asked"}});
  rejected.set_reason("OutOfcpu");
  rejected.set_message("Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000");
  CHECK(printed(reply) ==
        "default/a: rejected\n"
        "HANDLER     VERDICT    REASON    MESSAGE\n"
        "eviction    admitted\n"
        "predicates  rejected   OutOfcpu  Node didn't have enough resource: cpu,\n"
        "                                 requested: 3000, used: 0, capacity: 2000\n"
        "shutdown    not asked\n");
  std::ostringstream painted;
  print_admission(painted, reply, {.width = 80, .paint = Paint{true}});
  CHECK(painted.str().starts_with("default/a: " + Paint{true}(Style::Bad, "rejected") + "\n"));
}

TEST_CASE("a resize is deferred or infeasible") {
  v1::AdmitBatchResponse reply;
  auto& pending = *reply.add_answers();
  pending = answer("a", {{"resize", "admitted"}, {"eviction", "rejected"}});
  pending.set_resize(v1::AdmitResponse::RESIZE_DEFERRED);
  pending.set_reason("Deferred");
  CHECK(printed(reply) ==
        "default/a: deferred\n"
        "HANDLER   VERDICT   REASON    MESSAGE\n"
        "resize    admitted\n"
        "eviction  rejected  Deferred\n");
  pending.set_resize(v1::AdmitResponse::RESIZE_INFEASIBLE);
  CHECK(printed(reply).starts_with("default/a: infeasible\n"));
}

TEST_CASE("of a pod that is admitted it is told who goes for it and what it is given") {
  v1::AdmitBatchResponse reply;
  auto& admitted = *reply.add_answers();
  admitted = answer("a", {{"eviction", "admitted"}});
  admitted.set_admitted(true);
  admitted.add_preempted()->set_namespace_("kube\n");
  admitted.mutable_preempted(0)->set_name("b");
  auto& given = *admitted.add_allocations();
  given.set_container("app");
  given.set_cpus("2-3");
  given.add_memory()->set_type("memory");
  given.mutable_memory(0)->set_numa_nodes("0");
  given.mutable_memory(0)->set_bytes(1 << 30);
  given.add_devices()->set_resource("example.com/gpu");
  given.mutable_devices(0)->add_ids("gpu0");
  given.mutable_devices(0)->add_ids("gpu1");
  *reply.add_answers() = answer("c", {{"eviction", "rejected"}});
  CHECK(printed(reply) ==
        "default/a: admitted\n"
        "HANDLER   VERDICT   REASON  MESSAGE\n"
        "eviction  admitted\n"
        "preempts kube\\n/b\n"
        "\n"
        "CONTAINER  CPUS  MEMORY                   DEVICES\n"
        "app        2-3   1Gi of memory on node 0  example.com/gpu=gpu0,gpu1\n"
        "\n"
        "default/c: rejected\n"
        "HANDLER   VERDICT   REASON  MESSAGE\n"
        "eviction  rejected\n");
}

}  // namespace
}  // namespace evictd::ctl::admit_table_test
