#include "api/asked_pods.hpp"

#include <api.pb.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "evictd.pb.h"
#include "pods/asked_pod.hpp"
#include "pods/manifest.hpp"

namespace evictd::api {
namespace {

Result<void> add_pods(const std::string& text, std::string_view origin, std::vector<AskedPod>& asked) {
  auto pods = pods::parse_pods(text, origin);
  if (!pods) return std::unexpected(pods.error());
  for (auto& pod : *pods) asked.push_back({.pod = std::move(pod)});
  return {};
}

Result<AskedPod> read_runtime_subject(const v1::RuntimeSubject& subject, std::int64_t memory_capacity) {
  ::runtime::v1::PodSandboxConfig sandbox;
  if (!sandbox.ParseFromString(subject.sandbox_config()))
    return fail("runtime.sandbox_config is no runtime.v1.PodSandboxConfig");
  if (sandbox.metadata().name().empty()) return fail("runtime.sandbox_config names no pod");
  if (subject.container_config().empty())
    return AskedPod{.pod = pods::asked_pod(sandbox, memory_capacity), .from_runtime = true};
  ::runtime::v1::ContainerConfig container;
  if (!container.ParseFromString(subject.container_config()))
    return fail("runtime.container_config is no runtime.v1.ContainerConfig");
  return AskedPod{.pod = pods::asked_pod(sandbox, container, memory_capacity), .from_runtime = true};
}

}  // namespace

Result<std::vector<AskedPod>> read_asked_pods(const v1::AdmitRequest& request, std::int64_t memory_capacity) {
  std::vector<AskedPod> asked;
  if (request.has_runtime()) {
    auto pod = read_runtime_subject(request.runtime(), memory_capacity);
    if (!pod) return std::unexpected(pod.error());
    asked.push_back(*std::move(pod));
    return asked;
  }
  if (auto added = add_pods(request.pod(), "pod", asked); !added) return std::unexpected(added.error());
  if (asked.size() > 1)
    return fail(fmt::format("pod: there are {} pods in it; AdmitBatch takes several", asked.size()));
  return asked;
}

Result<std::vector<AskedPod>> read_asked_pods(const v1::AdmitBatchRequest& request) {
  const auto texts = static_cast<std::size_t>(request.pods_size());  // each has one at least
  if (texts > most_asked_pods)
    return fail(fmt::format("pods: there are {}, and at most {} are taken at once", texts, most_asked_pods));
  std::vector<AskedPod> asked;
  for (int i = 0; i < request.pods_size(); ++i) {
    if (auto added = add_pods(request.pods(i), fmt::format("pods[{}]", i), asked); !added)
      return std::unexpected(added.error());
    // What follows is not read: a text may have many documents.
    if (asked.size() > most_asked_pods)
      return fail(fmt::format("pods: there are more than {}, and no more are taken at once", most_asked_pods));
  }
  if (asked.empty()) return fail("pods: there is none");
  return asked;
}

}  // namespace evictd::api
