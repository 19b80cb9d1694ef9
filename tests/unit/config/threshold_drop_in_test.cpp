#include "config/threshold_drop_in.hpp"

#include <doctest/doctest.h>

#include "config/kubelet_configuration.hpp"
#include "fixture/tree.hpp"

namespace evictd::config::threshold_drop_in_test {
namespace {

using core::ThresholdOverlay;

const std::string header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

Result<ThresholdOverlay> parse(const std::string& fields) { return parse_threshold_drop_in(header + fields, "a.yaml"); }

std::string error_of(const std::string& fields) {
  const auto overlay = parse(fields);
  return overlay ? "none" : overlay.error().message;
}

}  // namespace

TEST_CASE("a drop-in sets entries, and null takes one away") {
  const auto overlay = parse(R"(
evictionHard: {memory.available: 500Mi, nodefs.available: null}
evictionSoft: {memory.available: 10%}
evictionSoftGracePeriod: {memory.available: 1m30s}
evictionMinimumReclaim: {memory.available: 100Mi}
)");
  REQUIRE(overlay.has_value());
  CHECK(overlay->hard == ThresholdOverlay::BySignal{{"memory.available", "500Mi"}, {"nodefs.available", std::nullopt}});
  CHECK(overlay->soft == ThresholdOverlay::BySignal{{"memory.available", "10%"}});
  CHECK(overlay->soft_grace_period == ThresholdOverlay::BySignal{{"memory.available", "1m30s"}});
  CHECK(overlay->minimum_reclaim == ThresholdOverlay::BySignal{{"memory.available", "100Mi"}});
}

TEST_CASE("what is printed reads back as the same") {
  ThresholdOverlay overlay;
  overlay.hard = {{"memory.available", "500Mi"}, {"nodefs.available", std::nullopt}};
  overlay.soft = {{"pid.available", "10%"}};
  overlay.soft_grace_period = {{"pid.available", "1m"}};
  const auto again = parse_threshold_drop_in(print_threshold_drop_in(overlay), "a.yaml");
  REQUIRE(again.has_value());
  CHECK(*again == overlay);
  CHECK(parse_threshold_drop_in(print_threshold_drop_in({}), "a.yaml")->empty());
}

TEST_CASE("printed thresholds read back to the same policy") {
  for (const std::string fields :
       {"", "evictionHard: {}\n", "evictionHard: {nodefs.available: 20%}\nmergeDefaultEvictionSettings: true\n",
        "evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 2m}\n"
        "evictionMinimumReclaim: {memory.available: 10Mi}\n"}) {
    CAPTURE(fields);
    const auto before = parse_kubelet_configuration(header + fields, "k");
    REQUIRE(before.has_value());
    const auto after = parse_kubelet_configuration(print_thresholds(before->eviction), "s");
    REQUIRE(after.has_value());
    const auto values = [](const KubeletConfiguration& configuration) {
      std::vector<std::string> lines;
      const auto policy = core::make_policy(configuration.eviction);
      REQUIRE(policy.has_value());
      for (const auto& threshold : policy->thresholds) lines.push_back(to_string(threshold));
      return lines;
    };
    CHECK(values(*after) == values(*before));
  }
}

TEST_CASE("an error names file, line and column") {
  const auto overlay = parse("evictionHard:\n  memory.available: 5x\n");
  REQUIRE_FALSE(overlay.has_value());
  CHECK(overlay.error().message.starts_with("a.yaml:4: evictionHard: memory.available: \"5x\" is not a quantity"));
  CHECK(overlay.error().column == 3);
  CHECK(error_of("evictionHard: {memory.availble: 1Gi}\n") ==
        "a.yaml:3: evictionHard: memory.availble: no such signal; did you mean \"memory.available\"?");
  CHECK(error_of("evictonHard: {}\n") == "a.yaml:3: evictonHard: unknown key; did you mean \"evictionHard\"?");
  CHECK(error_of("maxPods: 3\n").starts_with("a.yaml:3: maxPods: unknown key: a drop-in holds "));
  CHECK(error_of("evictionSoftGracePeriod: {memory.available: soon}\n").starts_with("a.yaml:3: "));
  const auto malformed = parse("evictionHard: {memory.available: [\n");
  REQUIRE_FALSE(malformed.has_value());
  CHECK(malformed.error().column > 0);
}

TEST_CASE("drop-ins are read in the order of their names; others are passed over") {
  using fixture::file;
  const fixture::Tree tree{{file("20-b.yaml", header + "evictionHard: {memory.available: 2Gi}\n"),
                            file("10-a.yml", header + "evictionHard: {memory.available: 1Gi}\n"),
                            file(".hidden.yaml", "nonsense: ["), file("README", "nonsense: ["),
                            file("10-a.yml.new", "nonsense: [")}};
  const auto drop_ins = load_threshold_drop_ins(tree.path());
  REQUIRE(drop_ins.has_value());
  REQUIRE(drop_ins->size() == 2);
  CHECK(drop_ins->at(0).name == "10-a.yml");
  CHECK(drop_ins->at(1).name == "20-b.yaml");
  CHECK(load_threshold_drop_ins(tree.path() / "none")->empty());
}

}  // namespace evictd::config::threshold_drop_in_test
