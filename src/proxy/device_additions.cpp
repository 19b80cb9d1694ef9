#include "proxy/device_additions.hpp"

#include <api.pb.h>
#include <evictd.pb.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <vector>

namespace evictd::proxy {

std::string device_additions(const v1::AdmitResponse& response, std::string_view container) {
  const auto found = std::ranges::find_if(
      response.allocations(), [&](const v1::ContainerAllocation& given) { return given.container() == container; });
  if (found == response.allocations().end() || !found->has_edits()) return {};
  const auto& edits = found->edits();
  ::runtime::v1::CreateContainerRequest request;
  auto& config = *request.mutable_config();
  for (const auto& [name, value] : edits.environment()) {
    auto& variable = *config.add_envs();
    variable.set_key(name);
    variable.set_value(value);
  }
  for (const auto& given : edits.mounts()) {
    auto& mount = *config.add_mounts();
    mount.set_container_path(given.container_path());
    mount.set_host_path(given.host_path());
    mount.set_readonly(given.read_only());
  }
  for (const auto& given : edits.devices()) {
    auto& device = *config.add_devices();
    device.set_container_path(given.container_path());
    device.set_host_path(given.host_path());
    device.set_permissions(given.permissions());
  }
  *config.mutable_annotations() = edits.annotations();
  for (const auto& name : edits.cdi_devices()) config.add_cdi_devices()->set_name(name);
  return config.ByteSizeLong() == 0 ? std::string{} : request.SerializeAsString();
}

std::optional<grpc::ByteBuffer> with_additions(const std::string& additions, const grpc::ByteBuffer& request) {
  std::vector<grpc::Slice> slices;
  if (!request.Dump(&slices).ok()) return std::nullopt;
  slices.insert(slices.begin(), grpc::Slice{additions});
  return grpc::ByteBuffer{slices.data(), slices.size()};
}

}  // namespace evictd::proxy
