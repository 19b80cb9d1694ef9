#include "pods/claimed_spec.hpp"

#include <doctest/doctest.h>

#include "core/pod_resources.hpp"
#include "core/qos.hpp"
#include "pods/annotated_spec.hpp"
#include "pods/assemble.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::pods::claimed_spec_test {
namespace {

using core::QosClass;

constexpr std::int64_t MiB = 1 << 20;
constexpr std::int64_t capacity = 1000 * MiB;  // so that one point of oom_score_adj is one MiB

/// A pod of an untrusted namespace with this spec, after it was held to what its containers were created with.
struct Held {
  Held(const std::string& spec, QosClass qos, std::vector<CreatedContainer> created)
      : pod{read_annotated_spec(spec).value()} {
    pod.status_qos = qos;
    hold_to_numbers(pod, created, capacity, warnings);
  }
  [[nodiscard]] std::int64_t request(std::string_view resource = "memory") const {
    return core::pod_request(pod, resource).value();
  }

  core::Pod pod;
  std::vector<Error> warnings;
};

std::string claiming(const std::string& resources, const std::string& more = "") {
  return R"({"containers": [{"name": "main", "resources": {)" + resources + "}}]" + more + "}";
}

const std::string requests_1000_gib = claiming(R"("requests": {"memory": "1000Gi"})");
const std::string guaranteed_1000_gib =
    claiming(R"("limits": {"memory": "1000Gi", "cpu": "8"}, "requests": {"memory": "1000Gi", "cpu": "8"})");

CreatedContainer main_with(const LinuxResources& numbers, bool exited = false) {
  return {.name = "main", .resources = numbers, .exited = exited};
}

}  // namespace

TEST_CASE("a BestEffort pod requests nothing, whatever it claims, and it is said why") {
  for (const auto& spec : {requests_1000_gib, guaranteed_1000_gib, claiming(R"("limits": {"memory": "1Gi"})")}) {
    for (const auto& created : {std::vector<CreatedContainer>{}, {main_with({.oom_score_adj = 1000})}}) {
      const Held held{spec, QosClass::BestEffort, created};
      CHECK(held.request() == 0);
      CHECK(held.request("cpu") == 0);
      CHECK_FALSE(held.warnings.empty());
    }
  }
  CHECK(Held{claiming(""), QosClass::BestEffort, {}}.warnings.empty());
}

TEST_CASE("a Burstable container requests no more than its oom_score_adj says, within a step of it") {
  const auto created = std::vector{main_with({.oom_score_adj = 900, .cpu_shares = 102})};
  const Held liar{requests_1000_gib, QosClass::Burstable, created};
  CHECK(liar.request() == 100 * MiB);
  REQUIRE(liar.warnings.size() == 1);
  CHECK(liar.warnings[0].message ==
        "annotation evictd.io/pod-spec: container \"main\" claims to request 1000Gi of memory, which cannot be by what "
        "it was created with; 100Mi is believed; if whoever makes pods in this namespace may decide that, name it in "
        "podSources.trustedNamespaces");

  const Held honest{claiming(R"("requests": {"memory": "102400Ki", "cpu": "100m"})"), QosClass::Burstable, created};
  CHECK(honest.request() == 100 * MiB);
  CHECK(honest.request("cpu") == 1);  // rounded up
  CHECK(honest.warnings.empty());

  const Held between{claiming(R"("requests": {"memory": "103000Ki"})"), QosClass::Burstable, created};
  CHECK(between.request() == 103000 * 1024);
  CHECK(Held{claiming(R"("requests": {"memory": "103Mi"})"), QosClass::Burstable, created}.request() == 100 * MiB);
  CHECK(Held{claiming(R"("requests": {"memory": "1Mi"})"), QosClass::Burstable, created}.request() == MiB);
  CHECK(Held{claiming(R"("requests": {"cpu": "8"})"), QosClass::Burstable, created}.request("cpu") == 1);
}

TEST_CASE("a Guaranteed container requests its limit") {
  const auto created = std::vector{main_with({.memory_limit = 64 * MiB, .oom_score_adj = -997, .cpu_shares = 1024})};
  const Held liar{guaranteed_1000_gib, QosClass::Guaranteed, created};
  CHECK(liar.request() == 64 * MiB);
  CHECK(liar.request("cpu") == 1);
  CHECK(liar.warnings.size() == 2);
  const auto honest = Held{claiming(R"("limits": {"memory": "64Mi", "cpu": "1"})"), QosClass::Guaranteed, created};
  CHECK(honest.request() == 64 * MiB);
  CHECK(honest.warnings.empty());
}

TEST_CASE("what runs cannot borrow from containers that do not") {
  const auto created = std::vector{main_with({.oom_score_adj = 900}),
                                   {.name = "init", .resources = LinuxResources{.oom_score_adj = 500}, .exited = true}};
  const std::string small = R"({"name": "main", "resources": {"requests": {"memory": "100Mi"}}})";
  const std::string init = R"({"name": "init", "resources": {"requests": {"memory": "500Mi"}}})";
  const std::string sidecar =
      R"({"name": "init", "restartPolicy": "Always", "resources": {"requests": {"memory": "500Mi"}}})";
  const auto request_of = [&](const std::string& spec) { return Held{spec, QosClass::Burstable, created}.request(); };
  CHECK(request_of(R"({"containers": [)" + small + "]}") == 100 * MiB);
  CHECK(request_of(R"({"containers": [)" + small + R"(], "initContainers": [)" + init + "]}") == 500 * MiB);
  CHECK(request_of(R"({"containers": [)" + small + R"(], "initContainers": [)" + sidecar + "]}") == 100 * MiB);
  CHECK(request_of(R"({"containers": [)" + small + ", " + init + "]}") == 100 * MiB);
  CHECK(request_of(R"({"containers": [)" + small +
                   R"(, {"name": "x", "resources": {"requests": {"memory": "1Gi"}}}]})") == 100 * MiB);
}

TEST_CASE("nothing vouches for requests of other resources, for pod-level resources and for overhead") {
  const Held held{claiming(R"("requests": {"ephemeral-storage": "1Ti", "example.com/gpu": "8"},
                              "limits": {"ephemeral-storage": "2Ti"})",
                           R"(, "resources": {"requests": {"memory": "1Ti"}}, "overhead": {"memory": "1Ti"})"),
                  QosClass::Burstable,
                  {main_with({.oom_score_adj = 900})}};
  CHECK(held.request() == 0);
  CHECK(held.request("ephemeral-storage") == 0);
  CHECK(held.request("example.com/gpu") == 0);
  CHECK(core::pod_limit(held.pod, "ephemeral-storage").value() == std::int64_t{2} << 40);
}

TEST_CASE("of a pod's many false claims the first are told, and how many more there are") {
  std::string containers;
  for (int i = 0; i < 100; ++i)
    containers += (i == 0 ? R"({"name": ")" : R"(, {"name": ")") + std::to_string(i) +
                  R"(", "resources": {"requests": {"memory": "1Gi"}}})";
  const Held held{R"({"containers": [)" + containers + "]}", QosClass::BestEffort, {}};
  CHECK(held.request() == 0);
  REQUIRE(held.warnings.size() == 5);
  CHECK(held.warnings[3].message.contains("container \"3\" claims to request 1Gi of memory"));
  CHECK(held.warnings[4].message == "annotation evictd.io/pod-spec: 96 more of such claims are not believed either");
}

TEST_CASE("a claim stands where there is nothing to hold it to") {
  CHECK(Held{requests_1000_gib, QosClass::Burstable, {{.name = "main"}}}.request() == std::int64_t{1000} << 30);
  auto pod = read_annotated_spec(requests_1000_gib).value();
  std::vector<Error> warnings;
  hold_to_numbers(pod, std::vector{main_with({})}, capacity, warnings);
  CHECK(core::pod_request(pod, "memory").value() == std::int64_t{1000} << 30);
  CHECK(warnings.empty());
}

TEST_CASE("of a container of which no number will ever be known a claim does not stand, and it is said why") {
  const Held held{requests_1000_gib, QosClass::Burstable, {{.name = "main", .is_silent = true}}};
  CHECK(held.request() == 0);
  REQUIRE(held.warnings.size() == 1);
  CHECK(held.warnings[0].message.contains("claims to request 1000Gi of memory"));
  const Held guaranteed{guaranteed_1000_gib, QosClass::Guaranteed, {{.name = "main", .is_silent = true}}};
  CHECK(guaranteed.request() == 0);
  const LinuxResources only_cpu{.cpu_shares = 1024};
  const Held half{
      guaranteed_1000_gib, QosClass::Burstable, {{.name = "main", .resources = only_cpu, .is_silent = true}}};
  CHECK(half.request() == 0);
  CHECK(half.request("cpu") == 1);
}

TEST_CASE("the kubelet's grace period counts, or else a claim of at most Kubernetes' default") {
  CHECK(believed_grace(3600, 10) == 10);
  CHECK(believed_grace(3600, std::nullopt) == 30);
  CHECK(believed_grace(5, std::nullopt) == 5);
  CHECK(believed_grace(std::nullopt, std::nullopt) == std::nullopt);
}

TEST_CASE("an annotated spec is held to the numbers unless its namespace is trusted") {
  auto sandbox = test::sandbox("s1", "hog", "u1");
  (*sandbox.mutable_annotations())[std::string(pod_spec_annotation)] =
      claiming(R"("requests": {"memory": "1000Gi", "cpu": "8"}, "limits": {"memory": "1000Gi", "cpu": "8"})",
               R"(, "terminationGracePeriodSeconds": 86400)");
  const auto listed = test::container("c1", "s1", "main");
  ::runtime::v1::ContainerStatusResponse status;
  (*status.mutable_info())["info"] = test::container_json(900);
  const auto facts = ContainerFacts::of(status);
  const auto assembled = [&](const TrustedNamespaces& trusted, std::vector<Error>& warnings) {
    return *assemble(sandbox, {}, {{&listed, &facts}}, capacity, trusted, warnings).pod;
  };

  std::vector<Error> warnings;
  const auto doubted = assembled(TrustedNamespaces{{"kube-system"}}, warnings);
  CHECK(core::qos_class(doubted) == QosClass::Burstable);
  CHECK(core::pod_request(doubted, "memory").value() == 100 * MiB);
  CHECK(doubted.termination_grace_period_seconds == 30);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].message.starts_with("pod shop/hog: annotation evictd.io/pod-spec: container \"main\" claims"));

  const auto believed = assembled(TrustedNamespaces{{"shop"}}, warnings);
  CHECK(core::qos_class(believed) == QosClass::Guaranteed);
  CHECK(core::pod_request(believed, "memory").value() == std::int64_t{1000} << 30);
  CHECK(believed.termination_grace_period_seconds == 86400);
  CHECK(warnings.size() == 1);
}

}  // namespace evictd::pods::claimed_spec_test
