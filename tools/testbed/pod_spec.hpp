#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/pod.hpp"
#include "testbed/image.hpp"

namespace testbed {

/// A directory or file of the host in a container, or an image volume.
struct MountSpec {
  std::filesystem::path host_path{};
  std::filesystem::path container_path;
  bool readonly = false;
  std::string image{};  ///< in place of a host path, and read-only (containerd 2.1)
};

struct ContainerSpec {
  std::string name = "main";
  std::vector<std::string> args{};  ///< of `load`, such as {"hold", "64Mi"}, unless there is a command
  std::vector<std::string> command{};
  std::string image{load_image};
  std::int64_t memory_request = 0;             ///< bytes; what the container's oom_score_adj says
  std::optional<std::int64_t> memory_limit{};  ///< bytes
  std::vector<MountSpec> mounts{};
  std::map<std::string, std::string> annotations{};
};

/// A pod as the kubelet would hand it to the runtime. Its cgroup and the oom_score_adj of its containers follow from
/// the QoS class, which is taken as given: the testbed does not compute it from the requests.
struct PodSpec {
  std::string name;
  std::string name_space = "default";
  std::string uid{};          ///< empty: a new one
  std::uint32_t attempt = 0;  ///< of the sandbox: a kubelet counts how often it made one for this uid
  evictd::core::QosClass qos = evictd::core::QosClass::Burstable;
  std::optional<int> priority{};  ///< the annotation evictd.io/priority
  std::optional<std::chrono::seconds> termination_grace_period{};
  std::map<std::string, std::string> labels{};
  std::map<std::string, std::string> annotations{};
  std::filesystem::path log_directory{};  ///< each container's output goes to NAME/ATTEMPT.log in it; empty: nowhere
  std::vector<ContainerSpec> containers{};
};

/// A pod that was started.
struct RunningPod {
  std::string name;
  std::string name_space;
  std::string uid;
  std::string sandbox{};                            ///< its id
  std::map<std::string, std::string> containers{};  ///< name -> id
  std::string cgroup{};                             ///< "/NODE/kubepods/burstable/podUID"; a container's is CGROUP/ID

  /// The id of a container; of the only one without argument.
  [[nodiscard]] const std::string& container() const { return containers.begin()->second; }
  [[nodiscard]] const std::string& container(const std::string& container_name) const {
    return containers.at(container_name);
  }
  [[nodiscard]] std::string container_cgroup() const { return cgroup + "/" + container(); }
};

}  // namespace testbed
