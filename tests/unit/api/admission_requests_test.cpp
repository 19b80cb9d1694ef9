#include "api/admission_requests.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/pod_resources.hpp"
#include "evictd.pb.h"
#include "fixture/result.hpp"

namespace evictd::api::admission_requests_test {
namespace {

using fixture::error_of;
using fixture::value_of;

constexpr std::int64_t capacity = std::int64_t{4} << 30;
const pods::TrustedNamespaces trusted{{"kube-system"}};

std::string pod(const std::string& name) {
  return fmt::format("metadata: {{name: {}}}\nspec: {{containers: [{{name: main}}]}}\n", name);
}

v1::AdmitRequest asking(const std::string& text) {
  v1::AdmitRequest request;
  request.set_pod(text);
  return request;
}

}  // namespace

TEST_CASE("a pod is read as YAML or JSON, and its spec is taken at its word") {
  const auto asked = value_of(read_admission_requests(asking(pod("a")), capacity, trusted));
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].pod.key() == "default/a");
  CHECK_FALSE(asked[0].from_runtime);
  const auto* json = R"({"metadata": {"name": "b"}, "spec": {"containers": [{"name": "main"}]}})";
  CHECK(value_of(read_admission_requests(asking(json), capacity, trusted)).at(0).pod.key() == "default/b");
}

TEST_CASE("one call asks about one pod, another about several texts of several pods") {
  const auto two = pod("a") + "---\n" + pod("b");
  CHECK(error_of(read_admission_requests(asking(two), capacity, trusted)) ==
        "pod: there are several pods in it; AdmitBatch takes them");
  v1::AdmitBatchRequest batch;
  batch.add_pods(two);
  batch.add_pods(pod("c"));
  const auto asked = value_of(read_admission_requests(batch));
  REQUIRE(asked.size() == 3);
  CHECK(asked[2].pod.name == "c");
}

TEST_CASE("what is no pod is said to be none, with its place") {
  CHECK(error_of(read_admission_requests(v1::AdmitRequest{}, capacity, trusted)) == "pod: there is no pod in it");
  CHECK(error_of(read_admission_requests(v1::AdmitBatchRequest{})) == "pods: there is none");
  v1::AdmitBatchRequest batch;
  batch.add_pods(pod("a"));
  batch.add_pods("kind: Node\n");
  CHECK(error_of(read_admission_requests(batch)).starts_with("pods[1]:1: kind: "));
}

TEST_CASE("as many pods are taken at once as the reactor may be busy with") {
  v1::AdmitBatchRequest batch;
  for (std::size_t i = 0; i < most_admission_requests; ++i) batch.add_pods(pod(fmt::format("p{}", i)));
  CHECK(value_of(read_admission_requests(batch)).size() == most_admission_requests);
  batch.add_pods(pod("more"));
  CHECK(error_of(read_admission_requests(batch)) == "pods: there are more than 256, and no more are taken at once");
}

TEST_CASE("what comes after too many pods is not read") {
  v1::AdmitBatchRequest batch;
  std::string many;
  for (std::size_t i = 0; i <= most_admission_requests; ++i) many += pod(fmt::format("p{}", i)) + "---\n";
  batch.add_pods(many);
  batch.add_pods("kind: Node\n");
  CHECK(error_of(read_admission_requests(batch)) == "pods: there are more than 256, and no more are taken at once");
}

TEST_CASE("a pod that repeats a long text through aliases is refused, whatever of it is repeated") {
  const auto refusal = [](std::string_view anchor, const std::string& rest, int times, std::string_view item) {
    auto text = fmt::format("x: &x {}\n{}", anchor, rest);
    for (int i = 0; i < times; ++i) text += fmt::format("{}{}", i == 0 ? "[" : ", ", item);
    return error_of(read_admission_requests(asking(text + "]\n"), capacity, trusted));
  };
  const std::string key(50'000, 'k');
  const std::string spec = "metadata: {name: a}\nspec:\n  containers: [{name: c}]\n  tolerations: ";
  CHECK(refusal("{key: \"" + key + "\"}", spec, 2000, "*x").ends_with("says more through aliases than a document may"));
  CHECK(refusal("{key: short}", spec, 2000, "*x") == "no error");
}

TEST_CASE("one pod many times by its alias is as many pods as may be asked about") {
  std::string list =
      "{kind: List, items: [&pod {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: "
      "[{name: main}], securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}}}";
  for (std::size_t i = 1; i < most_admission_requests; ++i) list += ", *pod ";
  v1::AdmitBatchRequest batch;
  batch.add_pods(list + "]}");
  CHECK(value_of(read_admission_requests(batch)).size() == most_admission_requests);
}

TEST_CASE("of a list only as many pods are read as tell that there are too many") {
  std::string list = "kind: List\nitems:\n- &pod {metadata: {name: a}, spec: {containers: [{name: c}]}}\n- *pod\n";
  const std::string unread = "- {kind: Node}\n";
  CHECK(error_of(read_admission_requests(asking(list + unread), capacity, trusted)) ==
        "pod: there are several pods in it; AdmitBatch takes them");
  v1::AdmitBatchRequest batch;
  list = "kind: List\nitems:\n";
  for (std::size_t i = 0; i <= most_admission_requests; ++i)
    list += "- {metadata: {name: a}, spec: {containers: [{name: c}]}}\n";
  batch.add_pods(list + unread);
  CHECK(error_of(read_admission_requests(batch)) == "pods: there are more than 256, and no more are taken at once");
}

TEST_CASE("to be resized is what the spec wants, to come what the status says was allocated") {
  const std::string resized =
      "metadata: {name: a}\n"
      "spec: {containers: [{name: main, resources: {requests: {memory: 2Gi}}}]}\n"
      "status: {qosClass: Burstable, containerStatuses: [{name: main, allocatedResources: {memory: 1Gi}}]}\n";
  const auto memory_of = [](const std::vector<AdmissionRequest>& asked) {
    return asked.at(0).pod.containers.at(0).resources.requests.at("memory").to_string();
  };
  auto request = asking(resized);
  auto asked = value_of(read_admission_requests(request, capacity, trusted));
  CHECK_FALSE(asked[0].resize);
  CHECK(memory_of(asked) == "1Gi");
  request.set_operation(v1::AdmitRequest::RESIZE);
  asked = value_of(read_admission_requests(request, capacity, trusted));
  CHECK(asked[0].resize);
  CHECK(memory_of(asked) == "2Gi");
  CHECK_FALSE(asked[0].pod.taken);
  CHECK(asked[0].pod.status_qos == core::QosClass::Burstable);

  v1::AdmitBatchRequest batch;
  batch.add_pods(resized);
  batch.set_operation(v1::AdmitRequest::RESIZE);
  const auto several = value_of(read_admission_requests(batch));
  CHECK(several[0].resize);
  CHECK(memory_of(several) == "2Gi");
}

TEST_CASE("an operation that is not known is refused") {
  auto request = asking(pod("a"));
  request.set_operation(static_cast<v1::AdmitRequest::Operation>(7));
  CHECK(error_of(read_admission_requests(request, capacity, trusted)) == "operation: 7 is none that this evictd knows");
  v1::AdmitBatchRequest batch;
  batch.set_operation(static_cast<v1::AdmitRequest::Operation>(7));
  batch.add_pods(pod("a"));
  CHECK(error_of(read_admission_requests(batch)) == "operation: 7 is none that this evictd knows");
}

TEST_CASE("a runtime's client resizes a container by its id") {
  v1::AdmitRequest request;
  request.set_operation(v1::AdmitRequest::RESIZE);
  auto& subject = *request.mutable_runtime();
  subject.set_container_id("c1");
  ::runtime::v1::LinuxContainerResources given;
  given.set_cpu_shares(512);
  given.set_memory_limit_in_bytes(1 << 20);
  given.SerializeToString(subject.mutable_linux_resources());
  const auto only = value_of(read_admission_requests(request, capacity, trusted)).at(0);
  CHECK(only.resize);
  CHECK(only.update ==
        ContainerUpdate{.container_id = "c1", .resources = {.memory_limit = 1 << 20, .cpu_shares = 512}});
  CHECK_FALSE(only.refused);
  request.set_operation(v1::AdmitRequest::RESIZE_REFUSED);
  const auto refused = value_of(read_admission_requests(request, capacity, trusted)).at(0);
  CHECK(refused.refused);
  CHECK(refused.update == only.update);
  auto of_a_pod = asking(pod("a"));
  of_a_pod.set_operation(v1::AdmitRequest::RESIZE_REFUSED);
  CHECK(error_of(read_admission_requests(of_a_pod, capacity, trusted)) ==
        "operation: RESIZE_REFUSED takes a container's id");
  subject.set_linux_resources("\x07");
  CHECK(error_of(read_admission_requests(request, capacity, trusted)) ==
        "runtime.linux_resources is no runtime.v1.LinuxContainerResources");
  subject.clear_container_id();
  CHECK(error_of(read_admission_requests(request, capacity, trusted)) ==
        "runtime.container_id: RESIZE takes a pod or a container's id");
}

TEST_CASE("a runtime's client is understood by its own messages") {
  ::runtime::v1::PodSandboxConfig sandbox;
  sandbox.mutable_metadata()->set_name("web");
  sandbox.mutable_metadata()->set_namespace_("shop");
  ::runtime::v1::ContainerConfig container;
  container.mutable_metadata()->set_name("app");
  v1::AdmitRequest request;
  auto& subject = *request.mutable_runtime();

  sandbox.SerializeToString(subject.mutable_sandbox_config());
  const auto only = value_of(read_admission_requests(request, capacity, trusted)).at(0);
  CHECK(only.from_runtime);
  CHECK(only.pod.key() == "shop/web");
  CHECK(only.pod.containers.empty());
  CHECK(only.container.empty());
  container.SerializeToString(subject.mutable_container_config());
  CHECK(value_of(read_admission_requests(request, capacity, trusted)).at(0).pod.containers.at(0).name == "app");
  CHECK(value_of(read_admission_requests(request, capacity, trusted)).at(0).container == "app");

  const auto requested = [&](const std::string& name_space) {
    auto annotated = sandbox;
    annotated.mutable_metadata()->set_namespace_(name_space);
    annotated.mutable_linux()->set_cgroup_parent("/kubepods/besteffort/pod1");
    annotated.mutable_metadata()->set_uid("1");
    (*annotated.mutable_annotations())["evictd.io/pod-spec"] =
        R"({"containers": [{"name": "app", "resources": {"requests": {"memory": "1Gi"}}}]})";
    v1::AdmitRequest claiming;
    annotated.SerializeToString(claiming.mutable_runtime()->mutable_sandbox_config());
    container.SerializeToString(claiming.mutable_runtime()->mutable_container_config());
    return core::pod_request(value_of(read_admission_requests(claiming, capacity, trusted)).at(0).pod, "memory");
  };
  CHECK(requested("kube-system") == core::Quantity::bytes(1 << 30));
  CHECK(requested("shop").is_zero());

  subject.set_container_config("\x07");
  CHECK(error_of(read_admission_requests(request, capacity, trusted)) ==
        "runtime.container_config is no runtime.v1.ContainerConfig");
  subject.set_sandbox_config("");
  CHECK(error_of(read_admission_requests(request, capacity, trusted)) == "runtime.sandbox_config names no pod");
  subject.set_sandbox_config("\x07");
  CHECK(error_of(read_admission_requests(request, capacity, trusted)) ==
        "runtime.sandbox_config is no runtime.v1.PodSandboxConfig");
}

}  // namespace evictd::api::admission_requests_test
