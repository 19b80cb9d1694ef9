#include "api/permission.hpp"

#include <doctest/doctest.h>

namespace evictd::api::permission_test {
namespace {

TEST_CASE("administrators look and change, readers look, and nobody does nothing") {
  for (const auto access : {Access::Look, Access::Change}) CHECK(permit({.role = Role::Admin}, access, "Call").ok());
  CHECK(permit({.role = Role::Reader}, Access::Look, "Call").ok());
  CHECK(permit({.role = Role::Reader}, Access::Change, "Call").error_code() == grpc::StatusCode::PERMISSION_DENIED);
  for (const auto access : {Access::Look, Access::Change})
    CHECK(permit({.role = Role::None}, access, "Call").error_code() == grpc::StatusCode::PERMISSION_DENIED);
}

TEST_CASE("a refusal says what to do, and to nobody under which name it is known") {
  CHECK(permit({.role = Role::Reader, .name = "uid 7", .remedy = "use admin.sock (/run/a)"}, Access::Change,
               "UpdateThresholds")
            .error_message() == "UpdateThresholds is for administrators: use admin.sock (/run/a)");
  CHECK(permit({.role = Role::None, .name = "CN=guest", .remedy = "no list names it"}, Access::Look, "GetNodeStatus")
            .error_message() == "CN=guest may do nothing here: no list names it");
  CHECK(permit({.role = Role::None, .name = "CN=guest"}, Access::Look, "x").error_message() ==
        "CN=guest may do nothing here");
}

}  // namespace
}  // namespace evictd::api::permission_test
