#include "app/last_runtime.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "app/discovery.hpp"
#include "cri/endpoint.hpp"
#include "os/atomic_file.hpp"

namespace evictd::app {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> kept_in(const std::string& path) {
  std::array<char, 256> line{};  // no endpoint is as long
  std::ifstream file{path};
  if (!file.getline(line.data(), line.size())) return std::nullopt;
  auto endpoint = cri::parse_endpoint(line.data());
  return endpoint ? std::optional{*std::move(endpoint)} : std::nullopt;
}

}  // namespace

Result<void> keep_runtime(const kubelet::Configuration& kubelet, const config::AgentConfiguration& agent) {
  const auto path = config::runtime_files(agent).kubelet_runtime;
  const auto told = told_endpoint(kubelet, agent);
  if (told == kept_in(path)) return {};
  if (told) return os::write_atomically(path, *told + '\n', {.durable = false});
  std::error_code error;
  fs::remove(path, error);
  return error ? fail(path + ": cannot be removed: " + error.message()) : Result<void>{};
}

bool recall_runtime(kubelet::Configuration& kubelet, const config::AgentConfiguration& agent) {
  auto kept = kept_in(config::runtime_files(agent).kubelet_runtime);
  std::error_code ignored;
  if (!kept || !fs::exists(kept->substr(cri::endpoint_scheme.size()), ignored)) return false;
  kubelet.values.container_runtime_endpoint = *std::move(kept);
  kubelet.origins.insert_or_assign(std::string(endpoint_key), "the kubelet that ran last");
  return true;
}

}  // namespace evictd::app
