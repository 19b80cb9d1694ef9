#include "pods/infer.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "core/qos.hpp"

namespace evictd::pods::infer_test {

using namespace evictd;
using core::QosClass;
using core::Quantity;
using pods::LinuxResources;

namespace {

constexpr std::int64_t MiB = 1 << 20;
constexpr std::int64_t capacity = 4096 * MiB;

std::optional<QosClass> qos(std::initializer_list<std::int64_t> oom_score_adjs) {
  std::vector<LinuxResources> containers;
  for (const auto adj : oom_score_adjs) containers.push_back({.oom_score_adj = adj});
  return pods::qos_from_oom_score_adj(containers);
}

core::Container infer(const LinuxResources& resources, std::optional<QosClass> qos) {
  return pods::infer_container("c", resources, qos, capacity);
}

core::ResourceList memory(std::int64_t bytes) { return {{"memory", Quantity::bytes(bytes)}}; }

struct Priority {
  std::optional<std::int32_t> value;
  std::string class_name;
  std::size_t warnings;
  friend bool operator==(const Priority&, const Priority&) = default;
};

Priority priority(std::map<std::string, std::string, std::less<>> annotations,
                  std::map<std::string, std::string, std::less<>> labels = {}) {
  core::Pod pod{.name_space = "shop",
                .name = "web",
                .uid = "1",
                .labels = std::move(labels),
                .annotations = std::move(annotations)};
  std::vector<Error> warnings;
  pods::infer_priority(pod, warnings);
  return {pod.priority, pod.priority_class_name, warnings.size()};
}

}  // namespace

TEST_CASE("the QoS class shows in the oom_score_adj of the containers") {
  CHECK(qos({-997}) == QosClass::Guaranteed);
  CHECK(qos({-998}) == QosClass::Guaranteed);
  CHECK(qos({1000}) == QosClass::BestEffort);
  CHECK(qos({1000, 1000}) == QosClass::BestEffort);
  for (const std::int64_t adj : {2, 3, 500, 999}) CHECK(qos({adj}) == QosClass::Burstable);
  CHECK(qos({0, 968}) == QosClass::Burstable);
  CHECK(qos({-997, 968}) == QosClass::Burstable);
}

TEST_CASE("an oom_score_adj that the kubelet never gives tells nothing") {
  CHECK(qos({}) == std::nullopt);
  for (const std::int64_t adj : {0, 1, -1, -500, -996, 1001}) {
    CAPTURE(adj);
    CHECK(qos({adj}) == std::nullopt);
  }
}

TEST_CASE("a Burstable container's memory request is read back from its oom_score_adj to a thousandth of the node") {
  for (const std::int64_t request : {16 * MiB, 128 * MiB, 500 * MiB, 1024 * MiB, 4000 * MiB}) {
    const core::Container spec{.name = "c", .resources = {.requests = memory(request), .limits = {}}};
    const core::Pod pod{.name_space = "shop", .name = "web", .uid = "1", .containers = {spec}};
    const auto adj = core::oom_score_adj(pod, spec, capacity);
    const auto inferred = infer({.oom_score_adj = adj}, QosClass::Burstable).resources.requests.at("memory").value();
    CAPTURE(request);
    CAPTURE(inferred);
    CHECK(std::abs(inferred - request) <= capacity / 1000 + 1);
  }
}

TEST_CASE("an inferred request is never above the limit") {
  const LinuxResources given{.memory_limit = 2 * MiB, .oom_score_adj = 999};
  const auto inferred = infer(given, QosClass::Burstable);
  CHECK(inferred.resources.requests == memory(2 * MiB));
  CHECK(inferred.resources.limits == memory(2 * MiB));
  CHECK(inferred.name == "c");
}

TEST_CASE("a Guaranteed container requests its limits, a BestEffort one nothing") {
  const auto guaranteed = infer(
      {.memory_limit = 64 * MiB, .oom_score_adj = -997, .cpu_shares = 512, .cpu_quota = 50'000, .cpu_period = 100'000},
      QosClass::Guaranteed);
  CHECK(guaranteed.resources.limits ==
        core::ResourceList{{"cpu", *Quantity::parse("500m")}, {"memory", Quantity::bytes(64 * MiB)}});
  CHECK(guaranteed.resources.requests == guaranteed.resources.limits);
  CHECK(infer({.oom_score_adj = 1000, .cpu_shares = 2}, QosClass::BestEffort).resources.empty());
}

TEST_CASE("without a QoS class an oom_score_adj gives no memory request") {
  const auto unknown = infer({.memory_limit = 64 * MiB, .oom_score_adj = 0}, std::nullopt);
  CHECK(unknown.resources.limits == memory(64 * MiB));
  CHECK(unknown.resources.requests.empty());
  CHECK(infer({.oom_score_adj = -997}, QosClass::Burstable).resources.requests.empty());
}

TEST_CASE("every cpu request is read back exactly from the shares it became") {
  for (std::int64_t milli = 3; milli <= 8000; ++milli) {
    const auto inferred = infer({.cpu_shares = milli * 1024 / 1000}, QosClass::Burstable);
    REQUIRE(inferred.resources.requests.at("cpu").milli_value() == milli);
  }
}

TEST_CASE("numbers beyond any machine are not given") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(infer({.cpu_shares = most, .cpu_quota = most, .cpu_period = most}, QosClass::Burstable).resources.empty());
  CHECK(infer({.memory_limit = -1, .cpu_shares = -5, .cpu_quota = -1, .cpu_period = -1}, QosClass::Burstable)
            .resources.empty());
}

TEST_CASE("a pod's priority is the number its annotation says, otherwise that of a critical class") {
  CHECK(priority({}) == Priority{std::nullopt, "", 0});
  CHECK(priority({{"evictd.io/priority", "1000"}}) == Priority{1000, "", 0});
  CHECK(priority({{"evictd.io/priority", "-5"}}) == Priority{-5, "", 0});
  CHECK(priority({{"evictd.io/priority-class", "system-node-critical"}}) ==
        Priority{2000001000, "system-node-critical", 0});
  CHECK(priority({{"evictd.io/priority-class", "system-cluster-critical"}}) ==
        Priority{2000000000, "system-cluster-critical", 0});
  CHECK(priority({}, {{"evictd.io/priority-class", "system-cluster-critical"}}) ==
        Priority{2000000000, "system-cluster-critical", 0});
  CHECK(priority({{"evictd.io/priority-class", "batch"}}, {{"evictd.io/priority-class", "system-node-critical"}}) ==
        Priority{std::nullopt, "batch", 0});
  CHECK(priority({{"evictd.io/priority", "7"}, {"evictd.io/priority-class", "system-node-critical"}}) ==
        Priority{7, "system-node-critical", 0});
}

TEST_CASE("a priority that is no number is a warning and counts as absent") {
  for (const auto* text : {"", "high", "12x", " 12", "1e9", "0x10", "2147483648", "-2147483649", "1.5"}) {
    CAPTURE(text);
    CHECK(priority({{"evictd.io/priority", text}}) == Priority{std::nullopt, "", 1});
    CHECK(priority({{"evictd.io/priority", text}, {"evictd.io/priority-class", "system-node-critical"}}) ==
          Priority{2000001000, "system-node-critical", 1});
  }
}

TEST_CASE("the termination grace period comes from the kubelet's annotation") {
  std::vector<Error> warnings;
  CHECK(pods::infer_termination_grace({{"io.kubernetes.pod.terminationGracePeriod", "30"}}, warnings) == 30);
  CHECK(pods::infer_termination_grace({{"io.kubernetes.pod.terminationGracePeriod", "0"}}, warnings) == 0);
  CHECK(pods::infer_termination_grace({}, warnings) == std::nullopt);
  CHECK(warnings.empty());
  for (const auto* text : {"", "-1", "30s", "soon"}) {
    CAPTURE(text);
    CHECK(pods::infer_termination_grace({{"io.kubernetes.pod.terminationGracePeriod", text}}, warnings) ==
          std::nullopt);
  }
  CHECK(warnings.size() == 4);
}

TEST_CASE("an update changes what it gives, and a Burstable container's memory request never") {
  const auto container = [](QosClass qos) {
    return infer({.memory_limit = 1000 * MiB,
                  .oom_score_adj = 500,
                  .cpu_shares = 512,
                  .cpu_quota = 100'000,
                  .cpu_period = 100'000},
                 qos);
  };
  auto burstable = container(QosClass::Burstable);
  const auto memory_request = burstable.resources.requests.at("memory");
  pods::apply_update(burstable, {.memory_limit = 3000 * MiB, .oom_score_adj = 2, .cpu_shares = 1024},
                     QosClass::Burstable);
  CHECK(burstable.resources.requests.at("cpu") == *Quantity::parse("1"));
  CHECK(burstable.resources.requests.at("memory") == memory_request);
  CHECK(burstable.resources.limits.at("memory") == Quantity::bytes(3000 * MiB));
  CHECK(burstable.resources.limits.at("cpu") == *Quantity::parse("1"));

  auto guaranteed = container(QosClass::Guaranteed);
  pods::apply_update(guaranteed, {.memory_limit = 3000 * MiB}, QosClass::Guaranteed);
  CHECK(guaranteed.resources.requests.at("memory") == Quantity::bytes(3000 * MiB));
  CHECK(guaranteed.resources.requests.at("cpu") == *Quantity::parse("1"));
  const auto before = guaranteed;
  pods::apply_update(guaranteed, {}, QosClass::Guaranteed);
  CHECK(guaranteed == before);
}

}  // namespace evictd::pods::infer_test
