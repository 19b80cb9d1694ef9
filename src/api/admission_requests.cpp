#include "api/admission_requests.hpp"

#include <api.pb.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "evictd.pb.h"
#include "pods/linux_resources.hpp"
#include "pods/manifest.hpp"
#include "pods/sandbox_pod.hpp"

namespace evictd::api {
namespace {

/// A client newer than this may ask about something else.
template <class Request>
Result<v1::AdmitRequest::Operation> operation_of(const Request& request) {
  if (v1::AdmitRequest::Operation_IsValid(request.operation())) return request.operation();
  return fail(fmt::format("operation: {} is none that this evictd knows", static_cast<int>(request.operation())));
}

/// Whether whole pods are to be resized.
template <class Request>
Result<bool> is_resize(const Request& request) {
  const auto operation = operation_of(request);
  if (!operation) return std::unexpected(operation.error());
  if (*operation == v1::AdmitRequest::RESIZE_REFUSED) return fail("operation: RESIZE_REFUSED takes a container's id");
  return *operation == v1::AdmitRequest::RESIZE;
}

/// To be resized is what its spec wants, whatever its status says that it was given. One pod more than `most` in all is
/// not read on: the request is refused.
Result<void> add_pods(const std::string& text, std::string_view origin, bool resize, std::size_t most,
                      std::vector<AdmissionRequest>& asked) {
  auto pods = pods::parse_pods(text, origin, resize ? pods::Requests::Desired : pods::Requests::Allocated,
                               most + 1 - asked.size());
  if (!pods) return std::unexpected(pods.error());
  for (auto& pod : *pods) asked.push_back({.pod = std::move(pod), .resize = resize});
  return {};
}

Result<AdmissionRequest> read_runtime_subject(const v1::RuntimeSubject& subject, std::int64_t memory_capacity,
                                              const pods::TrustedNamespaces& trusted) {
  ::runtime::v1::PodSandboxConfig sandbox;
  if (!sandbox.ParseFromString(subject.sandbox_config()))
    return fail("runtime.sandbox_config is no runtime.v1.PodSandboxConfig");
  if (sandbox.metadata().name().empty()) return fail("runtime.sandbox_config names no pod");
  if (subject.container_config().empty())
    return AdmissionRequest{.pod = pods::pod_of_sandbox(sandbox, memory_capacity, trusted), .from_runtime = true};
  ::runtime::v1::ContainerConfig container;
  if (!container.ParseFromString(subject.container_config()))
    return fail("runtime.container_config is no runtime.v1.ContainerConfig");
  return AdmissionRequest{.pod = pods::pod_of_sandbox(sandbox, container, memory_capacity, trusted),
                          .from_runtime = true,
                          .container = container.metadata().name()};
}

/// What is to become of a container that is there.
Result<AdmissionRequest> read_container_update(const v1::RuntimeSubject& subject) {
  if (subject.container_id().empty()) return fail("runtime.container_id: RESIZE takes a pod or a container's id");
  ::runtime::v1::LinuxContainerResources given;
  if (!given.ParseFromString(subject.linux_resources()))
    return fail("runtime.linux_resources is no runtime.v1.LinuxContainerResources");
  AdmissionRequest asked{.pod = {}, .from_runtime = true, .resize = true};
  asked.update = ContainerUpdate{.container_id = subject.container_id(), .resources = pods::linux_resources(given)};
  return asked;
}

}  // namespace

Result<std::vector<AdmissionRequest>> read_admission_requests(const v1::AdmitRequest& request,
                                                              std::int64_t memory_capacity,
                                                              const pods::TrustedNamespaces& trusted) {
  std::vector<AdmissionRequest> asked;
  if (request.has_runtime()) {
    const auto operation = operation_of(request);
    if (!operation) return std::unexpected(operation.error());
    auto pod = *operation == v1::AdmitRequest::ADD ? read_runtime_subject(request.runtime(), memory_capacity, trusted)
                                                   : read_container_update(request.runtime());
    if (!pod) return std::unexpected(pod.error());
    pod->refused = *operation == v1::AdmitRequest::RESIZE_REFUSED;
    asked.push_back(*std::move(pod));
    return asked;
  }
  const auto resize = is_resize(request);
  if (!resize) return std::unexpected(resize.error());
  if (auto added = add_pods(request.pod(), "pod", *resize, 1, asked); !added) return std::unexpected(added.error());
  if (asked.size() > 1) return fail("pod: there are several pods in it; AdmitBatch takes them");
  return asked;
}

Result<std::vector<AdmissionRequest>> read_admission_requests(const v1::AdmitBatchRequest& request) {
  const auto resize = is_resize(request);
  if (!resize) return std::unexpected(resize.error());
  std::vector<AdmissionRequest> asked;
  for (int i = 0; i < request.pods_size(); ++i) {
    if (auto added = add_pods(request.pods(i), fmt::format("pods[{}]", i), *resize, most_admission_requests, asked);
        !added)
      return std::unexpected(added.error());
    // What follows is not read: a text may have many documents.
    if (asked.size() > most_admission_requests)
      return fail(fmt::format("pods: there are more than {}, and no more are taken at once", most_admission_requests));
  }
  if (asked.empty()) return fail("pods: there is none");
  return asked;
}

}  // namespace evictd::api
