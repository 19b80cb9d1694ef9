#include "kube/pod_objects.hpp"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "fixture/result.hpp"

namespace evictd::kube::pod_objects_test {
namespace {

using fixture::error_of;
using fixture::value_of;
namespace json = boost::json;

/// Compared as JSON: the order of keys is of no account.
bool same(const std::string& left, const std::string& right) { return json::parse(left) == json::parse(right); }

WallTime at(std::int64_t seconds) { return WallTime{std::chrono::seconds{seconds}}; }

Eviction hog() {
  Eviction eviction{
      .name_space = "shop",
      .name = "hog-x2x9z",
      .uid = "7f0c1a52-0000-4000-8000-000000000001",
      .message = {"The node was low on resource: memory. Threshold quantity: 100Mi, available: 53472Ki. Container "
                  "main was using 812Mi, request is 64Mi, has larger consumption of memory. ",
                  {{"offending_containers", "main"},
                   {"offending_containers_usage", "812Mi"},
                   {"starved_resource", "memory"}}},
      .time = at(1'714'564'800)};
  eviction.disruption = eviction.message.text;
  return eviction;
}

}  // namespace

TEST_CASE("times are told in UTC and whole seconds") {
  CHECK(rfc3339(at(0)) == "1970-01-01T00:00:00Z");
  CHECK(rfc3339(at(1'714'564'800) + std::chrono::milliseconds{999}) == "2024-05-01T12:00:00Z");
  CHECK(rfc3339(at(951'782'399)) == "2000-02-28T23:59:59Z");
}

TEST_CASE("the status of a pod that went because of a threshold reads as after an eviction by the kubelet") {
  CHECK(same(eviction_status_patch(hog(), hog().uid), R"({
    "metadata": {"uid": "7f0c1a52-0000-4000-8000-000000000001"},
    "status": {
      "phase": "Failed",
      "reason": "Evicted",
      "message": "The node was low on resource: memory. Threshold quantity: 100Mi, available: 53472Ki. Container main was using 812Mi, request is 64Mi, has larger consumption of memory. ",
      "conditions": [
        {"type": "Ready", "status": "False", "reason": "PodFailed", "message": "",
         "lastTransitionTime": "2024-05-01T12:00:00Z"},
        {"type": "ContainersReady", "status": "False", "reason": "PodFailed", "message": "",
         "lastTransitionTime": "2024-05-01T12:00:00Z"},
        {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet",
         "message": "The node was low on resource: memory. Threshold quantity: 100Mi, available: 53472Ki. Container main was using 812Mi, request is 64Mi, has larger consumption of memory. ",
         "lastTransitionTime": "2024-05-01T12:00:00Z"}]}})"));
}

TEST_CASE("a pod that ends for another reason has that reason in its status and its Event") {
  auto eviction = hog();
  eviction.reason = "Terminated";
  eviction.message = {"Pod was terminated in response to imminent node shutdown.", {}};
  eviction.disruption = "the machine goes down";
  const auto status = json::parse(eviction_status_patch(eviction, eviction.uid)).at("status");
  CHECK(status.at("phase") == "Failed");
  CHECK(status.at("reason") == "Terminated");
  CHECK(status.at("message") == "Pod was terminated in response to imminent node shutdown.");
  CHECK(status.at("conditions").at(2).at("type") == "DisruptionTarget");
  CHECK(status.at("conditions").at(2).at("reason") == "TerminationByKubelet");
  CHECK(status.at("conditions").at(2).at("message") == "the machine goes down");
  const auto event = json::parse(eviction_event(eviction, eviction.uid, "node-1"));
  CHECK(event.at("reason") == "Terminated");
  CHECK(event.at("metadata").at("name") !=
        json::parse(eviction_event(hog(), hog().uid, "node-1")).at("metadata").at("name"));
}

TEST_CASE("a pod beyond a limit of its own is no target of a disruption") {
  auto eviction = hog();
  eviction.disruption.reset();
  eviction.message = {R"(Usage of EmptyDir volume "cache" exceeds the limit "1Gi". )", {}};
  CHECK(same(eviction_status_patch(eviction, eviction.uid), R"({
    "metadata": {"uid": "7f0c1a52-0000-4000-8000-000000000001"},
    "status": {
      "phase": "Failed",
      "reason": "Evicted",
      "message": "Usage of EmptyDir volume \"cache\" exceeds the limit \"1Gi\". ",
      "conditions": [
        {"type": "Ready", "status": "False", "reason": "PodFailed", "message": "",
         "lastTransitionTime": "2024-05-01T12:00:00Z"},
        {"type": "ContainersReady", "status": "False", "reason": "PodFailed", "message": "",
         "lastTransitionTime": "2024-05-01T12:00:00Z"}]}})"));
}

TEST_CASE("the patch of a mirror pod carries the mirror's uid") {
  CHECK(json::parse(eviction_status_patch(hog(), "mirror")).at("metadata").at("uid") == "mirror");
}

TEST_CASE("a deletion is of this pod and no other, and at once") {
  CHECK(same(delete_options("u"), R"({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                                      "preconditions": {"uid": "u"}})"));
}

TEST_CASE("the Event on the pod is the kubelet's, from evictd") {
  const auto event = json::parse(eviction_event(hog(), hog().uid, "node-1"));
  const auto name = std::string(event.at("metadata").at("name").as_string());
  CHECK(name.starts_with("hog-x2x9z."));
  CHECK(name.size() == std::string("hog-x2x9z.").size() + 16);
  auto expected = json::parse(R"({
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {
      "namespace": "shop",
      "annotations": {"offending_containers": "main", "offending_containers_usage": "812Mi",
                      "starved_resource": "memory"}},
    "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "hog-x2x9z",
                       "uid": "7f0c1a52-0000-4000-8000-000000000001"},
    "reason": "Evicted",
    "message": "The node was low on resource: memory. Threshold quantity: 100Mi, available: 53472Ki. Container main was using 812Mi, request is 64Mi, has larger consumption of memory. ",
    "type": "Warning",
    "source": {"component": "evictd", "host": "node-1"},
    "reportingComponent": "evictd",
    "reportingInstance": "node-1",
    "firstTimestamp": "2024-05-01T12:00:00Z",
    "lastTimestamp": "2024-05-01T12:00:00Z",
    "count": 1})");
  expected.at("metadata").as_object()["name"] = name;
  CHECK(event == expected);
}

TEST_CASE("an Event without annotations has none") {
  auto eviction = hog();
  eviction.message.annotations.clear();
  CHECK_FALSE(json::parse(eviction_event(eviction, "u", "n")).at("metadata").as_object().contains("annotations"));
}

TEST_CASE("an Event's name is the same for the same eviction, another for another, and never too long") {
  const auto name_of = [](const Eviction& eviction) {
    return std::string(json::parse(eviction_event(eviction, eviction.uid, "n")).at("metadata").at("name").as_string());
  };
  auto later = hog();
  later.time = at(1'800'000'000);
  CHECK(name_of(later) == name_of(hog()));
  auto again = hog();
  again.id = 8;
  CHECK(name_of(again) != name_of(hog()));
  auto successor = hog();
  successor.uid = "7f0c1a52-0000-4000-8000-000000000002";
  CHECK(name_of(successor) != name_of(hog()));
  auto longest = hog();
  longest.name = std::string(235, 'a') + "-" + std::string(17, 'b');
  CHECK(name_of(longest).size() == 252);  // not ending in "-." before the number
  CHECK(name_of(longest).starts_with(std::string(235, 'a') + "."));
}

TEST_CASE("the Event on the node says what is being reclaimed, and how often since the last one") {
  const auto event = json::parse(
      threshold_event({.resource = "ephemeral-storage", .first = at(60), .last = at(90), .count = 3}, "n1"));
  auto expected = json::parse(R"({
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"namespace": "default"},
    "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1"},
    "reason": "EvictionThresholdMet",
    "message": "Attempting to reclaim ephemeral-storage",
    "type": "Warning",
    "source": {"component": "evictd", "host": "n1"},
    "reportingComponent": "evictd",
    "reportingInstance": "n1",
    "firstTimestamp": "1970-01-01T00:01:00Z",
    "lastTimestamp": "1970-01-01T00:01:30Z",
    "count": 3})");
  expected.at("metadata").as_object()["name"] = event.at("metadata").at("name");
  CHECK(event == expected);
}

TEST_CASE("names go into targets only if an API object can have them") {
  CHECK(can_be_api_pod(hog()));
  CHECK(pod_target(hog()) == "/api/v1/namespaces/shop/pods/hog-x2x9z");
  CHECK(events_target("shop") == "/api/v1/namespaces/shop/events");
  for (const auto* name : {"", "..", "a/b", "A", "a b", "-a", "a-", "a%2f"}) {
    auto eviction = hog();
    eviction.name = name;
    CHECK_FALSE_MESSAGE(can_be_api_pod(eviction), name);
    eviction = hog();
    eviction.name_space = name;
    CHECK_FALSE_MESSAGE(can_be_api_pod(eviction), name);
  }
  auto nameless = hog();
  nameless.uid.clear();
  CHECK_FALSE(can_be_api_pod(nameless));
}

TEST_CASE("a pod read says who it is, whom it mirrors and how it is") {
  const auto plain = value_of(parse_pod_object(R"({"metadata": {"uid": "u", "annotations": {"a": "b"}}})"));
  CHECK(plain.uid == "u");
  CHECK(plain.mirror_of.empty());
  const auto mirror =
      value_of(parse_pod_object(R"({"metadata": {"uid": "m", "annotations": {"kubernetes.io/config.mirror": "s"}}})"));
  CHECK(mirror.mirror_of == "s");
  const auto evicted =
      value_of(parse_pod_object(R"({"metadata": {"uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"},)"
                                R"( "status": {"phase": "Failed", "reason": "Evicted"}})"));
  CHECK(evicted.deleted);
  CHECK(is_told(hog(), evicted.phase, evicted.reason));
  CHECK_FALSE(plain.deleted);
  CHECK_FALSE(is_told(hog(), plain.phase, plain.reason));
  CHECK_FALSE(is_told(hog(), "Failed", ""));
  CHECK_FALSE(is_told(hog(), "Running", "Evicted"));
  CHECK(error_of(parse_pod_object("{")).starts_with("the pod read from the API server is not JSON"));
  CHECK(error_of(parse_pod_object("{}")) == "the pod read from the API server has no uid");
  CHECK(error_of(parse_pod_object("[1]")) == "the pod read from the API server has no uid");
}

TEST_CASE("the Event of a shutdown is on the node, in the kubelet's words") {
  const NodeShutdown begun{.pending = true, .begun = core::Instant{core::Duration{7}}};
  const auto event = json::parse(shutdown_event(begun, at(60), "n1"));
  auto expected = json::parse(R"({
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"namespace": "default"},
    "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1"},
    "reason": "NodeShutdown",
    "message": "Shutdown manager detected shutdown event",
    "type": "Normal",
    "source": {"component": "evictd", "host": "n1"},
    "reportingComponent": "evictd",
    "reportingInstance": "n1",
    "firstTimestamp": "1970-01-01T00:01:00Z",
    "lastTimestamp": "1970-01-01T00:01:00Z",
    "count": 1})");
  expected.at("metadata").as_object()["name"] = event.at("metadata").at("name");
  CHECK(event == expected);
}

TEST_CASE("a shutdown's Event has the same name whoever makes it, another for its end and for another shutdown") {
  const auto name_of = [](bool pending, std::int64_t begun, WallTime time) {
    const NodeShutdown shutdown{.pending = pending, .begun = core::Instant{core::Duration{begun}}};
    return json::parse(shutdown_event(shutdown, time, "n1")).at("metadata").at("name");
  };
  CHECK(name_of(true, 7, at(60)) == name_of(true, 7, at(61)));
  CHECK(name_of(false, 7, at(60)) != name_of(true, 7, at(60)));
  CHECK(name_of(true, 8, at(60)) != name_of(true, 7, at(60)));
  const NodeShutdown called_off{.pending = false, .begun = core::Instant{core::Duration{7}}};
  CHECK(json::parse(shutdown_event(called_off, at(60), "n1")).at("message") ==
        "Shutdown manager detected shutdown cancellation");
}

}  // namespace evictd::kube::pod_objects_test
