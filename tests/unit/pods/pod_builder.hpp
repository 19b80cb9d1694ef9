#pragma once
#include <api.pb.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>

// Sandboxes and containers as a runtime lists them, and what it says of them verbosely.
namespace evictd::test {

inline runtime::v1::PodSandbox sandbox(const std::string& id, const std::string& name, const std::string& uid,
                                       std::int64_t created_at = 1) {
  runtime::v1::PodSandbox sandbox;
  sandbox.set_id(id);
  sandbox.mutable_metadata()->set_name(name);
  sandbox.mutable_metadata()->set_namespace_("shop");
  sandbox.mutable_metadata()->set_uid(uid);
  sandbox.set_state(runtime::v1::SANDBOX_READY);
  sandbox.set_created_at(created_at);
  return sandbox;
}

inline runtime::v1::Container container(const std::string& id, const std::string& sandbox_id, const std::string& name,
                                        runtime::v1::ContainerState state = runtime::v1::CONTAINER_RUNNING,
                                        std::int64_t created_at = 1) {
  runtime::v1::Container container;
  container.set_id(id);
  container.set_pod_sandbox_id(sandbox_id);
  container.mutable_metadata()->set_name(name);
  container.set_state(state);
  container.set_created_at(created_at);
  return container;
}

inline std::string sandbox_json(const std::string& cgroup_parent) {
  return fmt::format(R"({{"config":{{"linux":{{"cgroup_parent":"{}"}}}}}})", cgroup_parent);
}

inline std::string container_json(int oom_score_adj, std::int64_t memory_limit = 0, int pid = 0,
                                  const std::string& cgroup = "") {
  return fmt::format(
      R"({{"pid":{},"config":{{"linux":{{"resources":{{"memory_limit_in_bytes":{},"oom_score_adj":{}}}}}}},)"
      R"("runtimeSpec":{{"linux":{{"cgroupsPath":"{}"}}}}}})",
      pid, memory_limit, oom_score_adj, cgroup);
}

}  // namespace evictd::test
