#include "agent/threshold_request.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <optional>
#include <string>

#include "agent/threshold_control.hpp"
#include "fixture/node.hpp"
#include "fixture/result.hpp"

namespace evictd::agent::threshold_request_test {
namespace {

using namespace std::chrono_literals;
using enum core::Signal;

const core::EvictionSettings in_force{.hard = core::EvictionSettings::BySignal{{"memory.available", "100Mi"}},
                                      .soft = {{"nodefs.available", "10%"}},
                                      .soft_grace_period = {{"nodefs.available", "1m"}},
                                      .minimum_reclaim = {}};

struct Change {
  std::string signal;
  std::string value;
  bool soft = false;
  std::optional<std::int64_t> grace_seconds{};
};

v1::UpdateThresholdsRequest request(const Change& change) {
  v1::UpdateThresholdsRequest request;
  auto& message = *request.add_changes();
  message.set_signal(change.signal);
  message.set_value(change.value);
  message.set_soft(change.soft);
  if (change.grace_seconds) message.mutable_grace_period()->set_seconds(*change.grace_seconds);
  return request;
}

std::string refusal(const Change& change) { return fixture::error_of(overlay_of(request(change), in_force)); }

}  // namespace

TEST_CASE("a change lays a value over the settings, soft ones with their grace period") {
  const auto hard = fixture::value_of(overlay_of(request({"pid.available", "100"}), in_force));
  CHECK(hard.hard.at("pid.available") == "100");
  CHECK(hard.soft.empty());
  const auto soft = fixture::value_of(overlay_of(request({"memory.available", "1Gi", true, 90}), in_force));
  CHECK(soft.soft.at("memory.available") == "1Gi");
  CHECK(soft.soft_grace_period.at("memory.available") == "1m30s");
}

TEST_CASE("no value removes a threshold that is there, with its grace period") {
  CHECK(fixture::value_of(overlay_of(request({"memory.available", ""}), in_force)).hard.at("memory.available") ==
        std::nullopt);
  const auto soft = fixture::value_of(overlay_of(request({"nodefs.available", "", true}), in_force));
  CHECK(soft.soft.at("nodefs.available") == std::nullopt);
  CHECK(soft.soft_grace_period.at("nodefs.available") == std::nullopt);
}

TEST_CASE("a request that replaces everything removes what it does not name") {
  auto replacing = request({"pid.available", "100"});
  replacing.set_replace(true);
  const auto overlay = fixture::value_of(overlay_of(replacing, in_force));
  CHECK(overlay.hard.at("memory.available") == std::nullopt);
  CHECK(overlay.soft.at("nodefs.available") == std::nullopt);
  CHECK(overlay.hard.at("pid.available") == "100");
}

TEST_CASE("what cannot be is refused, and the reason names the signal") {
  CHECK(refusal({"memory.availabel", "1Gi"}) ==
        "\"memory.availabel\" is no signal; did you mean \"memory.available\"?");
  CHECK(refusal({"pid.available", ""}) == "pid.available: it has no hard threshold that could be removed");
  CHECK(refusal({"memory.available", "1Gi", false, 1}) ==
        "memory.available: a grace period belongs to a soft threshold: say that it is one");
  CHECK(refusal({"memory.available", "1Gi", true, -1}) ==
        "memory.available: a grace period is 0 to 1000000000 seconds");
  CHECK(fixture::error_of(overlay_of(v1::UpdateThresholdsRequest{}, in_force)).starts_with("nothing is to be changed"));
}

TEST_CASE("a threshold comes from the last layer that names it") {
  ThresholdLayers layers{.base = in_force,
                         .base_name = "kubelet configuration",
                         .base_origins = {{"evictionHard: memory.available", "/lib/kubelet.yaml:3"}},
                         .drop_ins_at = "/etc/thresholds.d"};
  auto threshold = fixture::threshold(MemoryAvailable, "100Mi");
  const auto source_of = [&](const core::Threshold& of, const core::ThresholdOverlay& live = {}) {
    return origin_of(of, layers, live).source;
  };
  CHECK(source_of(fixture::threshold(PidAvailable, "10")) == "default");
  CHECK(origin_of(fixture::threshold(PidAvailable, "10"), layers, {}).place.empty());
  CHECK(source_of(threshold) == "kubelet configuration");
  auto soft = fixture::threshold(MemoryAvailable, "500Mi");
  soft.source = core::ThresholdSource::EvictionSoft;  // without a grace period
  CHECK(source_of(soft) == "default");
  CHECK(origin_of(threshold, layers, {}).place == "/lib/kubelet.yaml:3");
  for (const auto* name : {"10-a.yaml", "20-b.yaml"}) {
    layers.drop_ins.push_back({.name = name, .overlay = {}});
    layers.drop_ins.back().overlay.hard["memory.available"] = "200Mi";
  }
  CHECK(source_of(threshold) == "20-b.yaml");
  CHECK(origin_of(threshold, layers, {}).place == "/etc/thresholds.d/20-b.yaml");
  threshold.source = core::ThresholdSource::EnforceNodeAllocatable;  // the copy for the pods' own cgroup
  CHECK(source_of(threshold) == "derived");
  CHECK(origin_of(threshold, layers, {}).place == "/etc/thresholds.d/20-b.yaml");
  threshold.source = core::ThresholdSource::EvictionHard;
  core::ThresholdOverlay live;
  live.hard["memory.available"] = "300Mi";
  CHECK(source_of(threshold, live) == "live");
  CHECK(source_of(fixture::threshold(MemoryAvailable, "1Gi", 1min), live) == "default");
}

}  // namespace evictd::agent::threshold_request_test
