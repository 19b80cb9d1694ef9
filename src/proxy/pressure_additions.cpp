#include "proxy/pressure_additions.hpp"

#include <api.pb.h>

#include <filesystem>

namespace evictd::proxy {
namespace {

constexpr std::string_view place_in_container = "/run/evictd-pressure";

}  // namespace

std::string pressure_additions(const ::runtime::v1::PodSandboxConfig& pod, const std::string& socket) {
  if (socket.empty()) return {};
  const auto asked = pod.annotations().find(std::string(pressure_annotation));
  if (asked == pod.annotations().end() || asked->second != "true") return {};
  const std::filesystem::path path = socket;
  ::runtime::v1::CreateContainerRequest request;
  auto& config = *request.mutable_config();
  auto& mount = *config.add_mounts();
  mount.set_container_path(std::string(place_in_container));
  mount.set_host_path(path.parent_path().native());
  mount.set_readonly(true);
  auto& variable = *config.add_envs();
  variable.set_key("MEMORY_PRESSURE_WATCH");
  variable.set_value((std::filesystem::path(place_in_container) / path.filename()).native());
  return request.SerializeAsString();
}

}  // namespace evictd::proxy
