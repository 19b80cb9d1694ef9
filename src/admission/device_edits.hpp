#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace evictd::admission {

/// What a container must be given to have its devices, as their plugins answer Allocate. Nothing of it is looked into:
/// it is for the runtime.
struct DeviceEdits {
  struct Mount {
    std::string container_path;
    std::string host_path;
    bool read_only = false;

    friend bool operator==(const Mount&, const Mount&) = default;
  };
  struct Node {
    std::string container_path;
    std::string host_path;
    std::string permissions;  ///< of "r", "w" and "m"

    friend bool operator==(const Node&, const Node&) = default;
  };

  std::map<std::string, std::string> environment{};
  std::vector<Mount> mounts{};
  std::vector<Node> devices{};
  std::map<std::string, std::string> annotations{};
  std::vector<std::string> cdi_devices{};  ///< "example.com/gpu=gpu0"

  friend bool operator==(const DeviceEdits&, const DeviceEdits&) = default;
};

/// Adds what another plugin says of the same container. Where both name a variable, a path in the container, an
/// annotation or a CDI device, the first holds. (kubelet: deviceRunContainerOptions)
void add_edits(DeviceEdits& edits, const DeviceEdits& more);

/// What it takes to keep them, in bytes: their texts, and 64 more for each entry, which the names around it fit in.
[[nodiscard]] std::size_t size_of(const DeviceEdits& edits);

}  // namespace evictd::admission
