#include "kube/pod_objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "core/duration.hpp"
#include "kube/json_access.hpp"
#include "kube/url.hpp"

namespace evictd::kube {
namespace {

namespace json = boost::json;

constexpr std::size_t longest_name = 253;  // of an object: RFC 1123 subdomain

bool is_lower_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_subdomain(std::string_view name) {
  return !name.empty() && name.size() <= longest_name && is_lower_alphanumeric(name.front()) &&
         is_lower_alphanumeric(name.back()) &&
         std::ranges::all_of(name, [](char c) { return is_lower_alphanumeric(c) || c == '-' || c == '.'; });
}

/// FNV-1a: names only have to differ and to be the same again.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

/// "OBJECT.HEX", as client-go names events; the object's name is cut where both are too long.
std::string event_name(std::string_view object, std::uint64_t distinction) {
  const auto suffix = fmt::format(".{:016x}", distinction);
  object = object.substr(0, longest_name - suffix.size());
  while (!object.empty() && !is_lower_alphanumeric(object.back())) object.remove_suffix(1);
  return std::string(object) + suffix;
}

json::object condition(std::string_view type, std::string_view status, std::string_view reason,
                       std::string_view message, WallTime time) {
  return {{"type", type},
          {"status", status},
          {"reason", reason},
          {"message", message},
          {"lastTransitionTime", rfc3339(time)}};
}

struct EventFacts {
  std::string_view reason;
  std::string_view message;
  WallTime first;
  WallTime last;
  std::int64_t count = 1;
  std::string_view type = "Warning";
};

std::string event(json::object metadata, json::object involved, const EventFacts& facts, std::string_view node) {
  return json::serialize(json::object{{"apiVersion", "v1"},
                                      {"kind", "Event"},
                                      {"metadata", std::move(metadata)},
                                      {"involvedObject", std::move(involved)},
                                      {"reason", facts.reason},
                                      {"message", facts.message},
                                      {"type", facts.type},
                                      {"source", {{"component", "evictd"}, {"host", node}}},
                                      {"reportingComponent", "evictd"},
                                      {"reportingInstance", node},
                                      {"firstTimestamp", rfc3339(facts.first)},
                                      {"lastTimestamp", rfc3339(facts.last)},
                                      {"count", facts.count}});
}

/// An Event on the node. Its uid there is its name, as in the kubelet's Events.
std::string node_event(std::uint64_t distinction, const EventFacts& facts, std::string_view node) {
  json::object metadata{{"name", event_name(node, distinction)}, {"namespace", "default"}};
  json::object involved{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node}};
  return event(std::move(metadata), std::move(involved), facts, node);
}

}  // namespace

bool can_be_api_pod(const Eviction& eviction) {
  return !eviction.uid.empty() && is_subdomain(eviction.name_space) && is_subdomain(eviction.name);
}

std::string pod_target(const Eviction& eviction) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", percent_encoded(eviction.name_space),
                     percent_encoded(eviction.name));
}

std::string events_target(std::string_view name_space) {
  return fmt::format("/api/v1/namespaces/{}/events", percent_encoded(name_space));
}

std::string eviction_status_patch(const Eviction& eviction, std::string_view api_uid) {
  json::array conditions{condition("Ready", "False", "PodFailed", "", eviction.time),
                         condition("ContainersReady", "False", "PodFailed", "", eviction.time)};
  if (eviction.disruption)
    conditions.push_back(
        condition("DisruptionTarget", "True", "TerminationByKubelet", *eviction.disruption, eviction.time));
  return json::serialize(json::object{{"metadata", {{"uid", api_uid}}},
                                      {"status",
                                       {{"phase", "Failed"},
                                        {"reason", eviction.reason},
                                        {"message", eviction.message.text},
                                        {"conditions", std::move(conditions)}}}});
}

bool is_told(const Eviction& eviction, std::string_view phase, std::string_view reason) {
  return phase == "Failed" && reason == eviction.reason;
}

std::string delete_options(std::string_view api_uid) {
  return json::serialize(json::object{{"apiVersion", "v1"},
                                      {"kind", "DeleteOptions"},
                                      {"gracePeriodSeconds", 0},
                                      {"preconditions", {{"uid", api_uid}}}});
}

std::string eviction_event(const Eviction& eviction, std::string_view api_uid, std::string_view node) {
  const auto distinction = hash_of(fmt::format("{} {} {}", eviction.reason, eviction.uid, eviction.id));
  json::object metadata{{"name", event_name(eviction.name, distinction)}, {"namespace", eviction.name_space}};
  if (!eviction.message.annotations.empty()) {
    json::object annotations;
    for (const auto& [key, value] : eviction.message.annotations) annotations[key] = value;
    metadata["annotations"] = std::move(annotations);
  }
  json::object involved{{"apiVersion", "v1"},
                        {"kind", "Pod"},
                        {"namespace", eviction.name_space},
                        {"name", eviction.name},
                        {"uid", api_uid}};
  const EventFacts facts{eviction.reason, eviction.message.text, eviction.time, eviction.time};
  return event(std::move(metadata), std::move(involved), facts, node);
}

std::string threshold_event(const ThresholdMet& met, std::string_view node) {
  const auto nanoseconds = static_cast<std::uint64_t>(met.last.time_since_epoch() / std::chrono::nanoseconds{1});
  // Two resources may run short at the same moment: each adds the place of its first signal.
  const auto signals = core::all_signals();
  const auto first = std::ranges::find(signals, met.resource, core::resource_of);
  const auto place = static_cast<std::uint64_t>(first - signals.begin());
  const auto message = fmt::format("Attempting to reclaim {}", met.resource);
  return node_event(nanoseconds + place, {"EvictionThresholdMet", message, met.first, met.last, met.count}, node);
}

std::string shutdown_event(const NodeShutdown& shutdown, WallTime time, std::string_view node) {
  const auto begun = shutdown.begun.value_or(core::Instant{}).time_since_epoch();
  const auto distinction = hash_of(fmt::format("NodeShutdown {} {}", begun.count(), shutdown.pending));
  const std::string_view message =
      shutdown.pending ? "Shutdown manager detected shutdown event" : "Shutdown manager detected shutdown cancellation";
  return node_event(distinction, {"NodeShutdown", message, time, time, 1, "Normal"}, node);
}

Result<PodObject> parse_pod_object(std::string_view body) {
  const auto document = parse_document(body, "the pod read from the API server");
  if (!document) return std::unexpected(document.error());
  PodObject pod{.uid = text_at(*document, "/metadata/uid"),
                .mirror_of = text_at(*document, "/metadata/annotations/kubernetes.io~1config.mirror"),
                .phase = text_at(*document, "/status/phase"),
                .reason = text_at(*document, "/status/reason"),
                .deleted = !text_at(*document, "/metadata/deletionTimestamp").empty()};
  if (pod.uid.empty()) return fail("the pod read from the API server has no uid");
  return pod;
}

}  // namespace evictd::kube
