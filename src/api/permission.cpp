#include "api/permission.hpp"

#include <fmt/format.h>

#include <string>

namespace evictd::api {
namespace {

std::string with_remedy(std::string message, const std::string& remedy) {
  return remedy.empty() ? message : fmt::format("{}: {}", message, remedy);
}

}  // namespace

grpc::Status permit(const Caller& caller, Access access, std::string_view call) {
  switch (caller.role) {
    case Role::Admin: return grpc::Status::OK;
    case Role::Reader:
      if (access == Access::Look) return grpc::Status::OK;
      return {grpc::StatusCode::PERMISSION_DENIED,
              with_remedy(fmt::format("{} is for administrators", call), caller.remedy)};
    case Role::None: break;
  }
  return {grpc::StatusCode::PERMISSION_DENIED,
          with_remedy(fmt::format("{} may do nothing here", caller.name), caller.remedy)};
}

}  // namespace evictd::api
