#include "api/refusals.hpp"

#include <doctest/doctest.h>

namespace evictd::api::refusals_test {
namespace {

using namespace std::chrono_literals;

const grpc::Status denied{grpc::StatusCode::PERMISSION_DENIED, "for administrators"};

struct Scene {
  /// The outcome as it is told; "" where it is not.
  std::string told(const std::string& account, const std::string& call, const grpc::Status& outcome = denied) {
    v1::Audit audit;
    audit.set_call(call);
    audit.set_outcome(outcome.ok() ? "done" : "refused");
    return refusals.is_told(Caller{.account = account}, outcome, now, audit) ? audit.outcome() : "";
  }

  Refusals refusals;
  core::Instant now = core::Instant{} + 1h;
};

}  // namespace

TEST_CASE("who may not is told of once a minute for each account and call, and what was done each time") {
  Scene scene;
  CHECK(scene.told("uid 1", "Admit") == "refused");
  for (int i = 0; i < 412; ++i) CHECK(scene.told("uid 1", "Admit").empty());
  CHECK(scene.told("uid 1", "PreKill") == "refused");
  CHECK(scene.told("uid 2", "Admit") == "refused");
  for (int i = 0; i < 3; ++i) CHECK(scene.told("uid 1", "Admit", grpc::Status::OK) == "done");
  CHECK(scene.told("uid 1", "Admit", {grpc::StatusCode::ABORTED, "changed meanwhile"}) == "refused");
  scene.now += 1min;
  CHECK(scene.told("uid 1", "Admit") == "refused, and 412 more");
  CHECK(scene.told("uid 1", "Admit").empty());
  scene.now += 1min;
  CHECK(scene.told("uid 2", "Admit") == "refused");
}

TEST_CASE("of very many accounts within a minute the rest count as one") {
  Scene scene;
  int told = 0;
  for (int i = 0; i < 10'000; ++i) told += scene.told("uid " + std::to_string(i), "Admit").empty() ? 0 : 1;
  CHECK(told == 257);
  CHECK(scene.told("uid 7", "Admit").empty());
  scene.now += 1min;
  CHECK(scene.told("uid 7", "Admit") == "refused, and 1 more");
}

}  // namespace evictd::api::refusals_test
