#include "api/audit.hpp"

#include <doctest/doctest.h>

#include "evictd.pb.h"

namespace evictd::api::audit_test {
namespace {

const Caller root{.role = Role::Admin, .name = "uid 0 (root), pid 7, admin.sock"};
const grpc::Status denied{grpc::StatusCode::PERMISSION_DENIED, "no"};

v1::ThresholdChange change(const std::string& signal, const std::string& value, bool soft = false) {
  v1::ThresholdChange change;
  change.set_signal(signal);
  change.set_value(value);
  change.set_soft(soft);
  return change;
}

TEST_CASE("what changed is told before and after") {
  v1::UpdateThresholdsResponse response;
  response.add_changes("memory.available: 100Mi -> 500Mi");
  response.add_changes("nodefs.available: none -> 10%");
  response.add_changes("something else");
  const auto audit = audit_thresholds(root, grpc::Status::OK, {}, &response, nullptr);
  CHECK(audit.caller() == root.name);
  CHECK(audit.call() == "UpdateThresholds");
  CHECK(audit.outcome() == "done");
  REQUIRE(audit.before_size() == 3);
  REQUIRE(audit.after_size() == 3);
  CHECK(audit.before(0) == "memory.available: 100Mi");
  CHECK(audit.after(0) == "memory.available: 500Mi");
  CHECK(audit.before(1) == "nodefs.available: none");
  CHECK(audit.after(1) == "nodefs.available: 10%");
  CHECK(audit.before(2).empty());
  CHECK(audit.after(2) == "something else");
}

TEST_CASE("of what was refused it is told what is in force and what was asked for") {
  v1::ThresholdSet now;
  now.add_thresholds()->mutable_threshold()->set_signal("memory.available");
  now.mutable_thresholds(0)->mutable_threshold()->set_value("100Mi");
  v1::UpdateThresholdsRequest request;
  *request.add_changes() = change("memory.available", "500Mi");
  *request.add_changes() = change("memory.available", "1Gi", true);
  *request.add_changes() = change("pid.available", "");
  request.set_replace(true);
  const auto audit = audit_thresholds(root, denied, request, nullptr, &now);
  CHECK(audit.outcome() == "PERMISSION_DENIED: no");
  REQUIRE(audit.after_size() == 4);
  CHECK(audit.before(0) == "memory.available: 100Mi");
  CHECK(audit.after(0) == "memory.available: 500Mi");
  CHECK(audit.before(1) == "memory.available (soft): none");
  CHECK(audit.after(1) == "memory.available (soft): 1Gi");
  CHECK(audit.after(2) == "pid.available: none");
  CHECK(audit.after(3) == "all others: none");
  CHECK(audit_thresholds(root, denied, request, nullptr, nullptr).before(0) == "memory.available: unknown");
}

TEST_CASE("pods are told with their verdicts, or undecided") {
  std::vector<AdmissionRequest> pods(2);
  pods[0].pod.name_space = pods[1].pod.name_space = "default";
  pods[0].pod.name = "a";
  pods[1].pod.name = "b";
  std::vector<v1::AdmitResponse> answers(2);
  answers[0].set_admitted(true);
  answers[1].set_reason("OutOfmemory");
  const auto audit = audit_admission(root, "AdmitBatch", grpc::Status::OK, pods, answers);
  CHECK(audit.before(0) == "default/a: undecided");
  CHECK(audit.after(0) == "default/a: admitted");
  CHECK(audit.after(1) == "default/b: rejected (OutOfmemory)");
  CHECK(audit_admission(root, "Admit", denied, pods, {}).after(1) == "default/b: undecided");
  pods[1].resize = true;
  answers[1].set_reason("Deferred");
  const auto resize = audit_admission(root, "AdmitBatch", grpc::Status::OK, pods, answers);
  CHECK(resize.after(0) == "default/a: admitted");
  CHECK(resize.before(1) == "default/b, resized: undecided");
  CHECK(resize.after(1) == "default/b, resized: rejected (Deferred)");
  pods[1].update = ContainerUpdate{.container_id = "c1", .resources = {}};
  CHECK(audit_admission(root, "Admit", grpc::Status::OK, pods, answers).after(1) ==
        "container c1, resized: rejected (Deferred)");
}

TEST_CASE("whatever is sent, what is told of it is small and in lines") {
  v1::UpdateThresholdsRequest request;
  for (int i = 0; i < 10'000; ++i)
    *request.add_changes() = change(std::string(2'000, 'x'), "a\nb" + std::string(500, 'y'));
  const auto audit = audit_thresholds(
      root, {grpc::StatusCode::INVALID_ARGUMENT, "first\nsecond" + std::string(5'000, 'z')}, request, nullptr, nullptr);
  CHECK(audit.ByteSizeLong() < 32 * 1024);
  CHECK(audit.before_size() == audit.after_size());
  CHECK(audit.before(audit.before_size() - 1) == "… and 9968 more");
  CHECK(audit.outcome().starts_with("INVALID_ARGUMENT: first second"));
  for (const auto& line : audit.after()) CHECK(line.find('\n') == std::string::npos);
}

TEST_CASE("a long text is cut between characters") {
  v1::UpdateThresholdsRequest request;
  std::string signal(255, 'x');
  for (int i = 0; i < 100; ++i) signal += "ü";
  *request.add_changes() = change(signal, "1");
  const auto audit = audit_thresholds(root, denied, request, nullptr, nullptr);
  v1::Audit parsed;  // which refuses a text that is not UTF-8
  CHECK(parsed.ParseFromString(audit.SerializeAsString()));
}

TEST_CASE("who registers to be asked before kills is told by name, and who may not without") {
  const auto audit = audit_pre_kill(root, grpc::Status::OK, "dumper");
  CHECK(audit.call() == "PreKill");
  CHECK(audit.outcome() == "done");
  CHECK(audit.before(0) == "dumper: not asked");
  CHECK(audit.after(0) == "dumper: asked before kills");
  CHECK(audit_pre_kill(root, denied, "").after_size() == 0);
  CHECK(audit_pre_kill(root, denied, "").outcome() == "PERMISSION_DENIED: no");
}

}  // namespace
}  // namespace evictd::api::audit_test
