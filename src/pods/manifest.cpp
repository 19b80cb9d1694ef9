#include "pods/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "config/fields.hpp"
#include "config/json.hpp"
#include "core/pod_resources.hpp"
#include "core/printable.hpp"
#include "core/resize.hpp"
#include "pods/manifest_lifecycle.hpp"
#include "pods/manifest_placement.hpp"
#include "pods/manifest_resources.hpp"
#include "pods/priority_class.hpp"

namespace evictd::pods {
namespace {

using config::Field;
using config::into;
using config::keep;
using config::read_fields;
using config::read_list;
using config::read_optional;
using config::UnknownKeys;
using config::Value;

Result<void> read_restart_policy(const Value& value, bool& restart_always) {
  const auto policy = value.text();
  if (!policy) return std::unexpected(policy.error());
  restart_always = *policy == "Always";
  return {};
}

Error missing(const Value& mapping, std::string_view key) { return mapping.error(fmt::format("{} is missing", key)); }

template <Network Of>
Result<void> read_ports(const Value& value, std::vector<core::HostPort>& target) {
  return read_host_ports(value, Of, target);
}

template <Network Of>
Result<void> read_container(const Value& value, core::Container& target) {
  using C = core::Container;
  static constexpr Field<C> fields[]{{"name", into<&C::name>},
                                     {"resources", into<&C::resources, read_resources>},
                                     {"ports", into<&C::host_ports, read_ports<Of>>},
                                     {"securityContext", read_container_security},
                                     {"lifecycle", into<&C::pre_stop, read_lifecycle>}};
  if (auto result = read_fields(value, target, fields, UnknownKeys::pass_over); !result) return result;
  if (target.name.empty()) return std::unexpected(missing(value, "name"));
  return resolve_hook_port(value, target);
}

/// A regular container may have a restartPolicy, too (Kubernetes 1.34), and is no sidecar for that. (kubelet:
/// isSidecarContainer)
template <Network Of>
Result<void> read_init_container(const Value& value, core::Container& target) {
  using C = core::Container;
  static constexpr Field<C> fields[]{{"restartPolicy", into<&C::restart_always, read_restart_policy>}};
  if (auto result = read_container<Of>(value, target); !result) return result;
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

/// No two have one name, nor one of each list. (kubernetes: validateInitContainers)
template <auto Read, auto List>
Result<void> read_containers(const Value& value, core::Pod& target) {
  if (auto result = read_list<Read>(value, target.*List); !result) return result;
  std::set<std::string_view> names;
  for (const auto* containers : {&target.init_containers, &target.containers})
    for (const auto& container : *containers)
      if (!names.insert(container.name).second)
        return std::unexpected(value.error(fmt::format("two containers are called \"{}\"", container.name)));
  return {};
}

Result<void> read_empty_dir(const Value& value, core::Volume& target) {
  using V = core::Volume;
  static constexpr Field<V> fields[]{{"medium", into<&V::medium>},
                                     {"sizeLimit", into<&V::size_limit, read_size_limit>}};
  target.kind = V::Kind::EmptyDir;
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

template <core::Volume::Kind Kind>
Result<void> is_of_kind(const Value&, core::Volume& target) {
  target.kind = Kind;
  return {};
}

Result<void> read_volume(const Value& value, core::Volume& target) {
  using V = core::Volume;
  static constexpr Field<V> fields[]{{"name", into<&V::name>},
                                     {"emptyDir", read_empty_dir},
                                     {"hostPath", is_of_kind<V::Kind::HostPath>},
                                     {"configMap", is_of_kind<V::Kind::ConfigMap>},
                                     {"gitRepo", is_of_kind<V::Kind::GitRepo>}};
  if (auto result = read_fields(value, target, fields, UnknownKeys::pass_over); !result) return result;
  if (target.name.empty()) return std::unexpected(missing(value, "name"));
  return {};
}

Result<void> read_toleration(const Value& value, core::Toleration& target) {
  using T = core::Toleration;
  static constexpr Field<T> fields[]{
      {"key", into<&T::key>}, {"operator", into<&T::op>}, {"value", into<&T::value>}, {"effect", into<&T::effect>}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

Result<void> read_qos_class(const Value& value, std::optional<core::QosClass>& target) {
  using enum core::QosClass;
  const auto text = value.text();
  if (!text) return std::unexpected(text.error());
  for (const auto qos : {BestEffort, Burstable, Guaranteed})
    if (core::name(qos) == *text) target = qos;
  if (!target) return std::unexpected(value.error(fmt::format("\"{}\" is no QoS class", *text)));
  return {};
}

using P = core::Pod;

Result<void> read_metadata(const Value& value, P& target) {
  static constexpr Field<P> fields[]{{"name", into<&P::name>},
                                     {"namespace", into<&P::name_space>},
                                     {"uid", into<&P::uid>},
                                     {"labels", into<&P::labels>},
                                     {"annotations", into<&P::annotations>}};
  if (auto result = read_fields(value, target, fields, UnknownKeys::pass_over); !result) return result;
  if (target.name.empty()) return std::unexpected(missing(value, "name"));
  return {};
}

template <Network Of>
Result<void> read_containers_on(const Value& spec, P& target) {
  static constexpr Field<P> fields[]{{"initContainers", read_containers<read_init_container<Of>, &P::init_containers>},
                                     {"containers", read_containers<read_container<Of>, &P::containers>}};
  return read_fields(spec, target, fields, UnknownKeys::pass_over);
}

Result<void> read_spec(const Value& value, P& target) {
  static constexpr Field<P> fields[]{
      {"priority", into<&P::priority>},
      {"priorityClassName", into<&P::priority_class_name>},
      {"resources", into<&P::resources, read_optional<read_resources, core::ResourceRequirements>>},
      {"overhead", into<&P::overhead, read_amounts>},
      {"volumes", into<&P::volumes, read_list<read_volume, core::Volume>>},
      {"tolerations", into<&P::tolerations, read_list<read_toleration, core::Toleration>>},
      {"terminationGracePeriodSeconds", into<&P::termination_grace_period_seconds>},
      {"nodeName", into<&P::node_name>},
      {"nodeSelector", into<&P::node_selector>},
      {"affinity", into<&P::required_node_affinity, read_affinity>},
      {"os", into<&P::os_name, read_os>},
      {"hostNetwork", into<&P::host_network>},
      {"hostIPC", into<&P::host_ipc>},
      {"hostUsers", into<&P::host_users>},
      {"securityContext", read_pod_security}};
  if (auto result = read_fields(value, target, fields, UnknownKeys::pass_over); !result) return result;
  // What a container's ports mean depends on the pod's network, wherever in the spec that stands.
  const auto read_all = target.host_network ? read_containers_on<Network::hosts> : read_containers_on<Network::own>;
  if (auto result = read_all(value, target); !result) return result;
  if (target.containers.empty()) return std::unexpected(missing(value, "containers"));
  return {};
}

Result<void> read_actuated(const Value& value, std::optional<core::ResourceList>& target) {
  core::ResourceRequirements resources;
  if (auto result = read_resources(value, resources); !result) return result;
  target = std::move(resources.requests);
  return {};
}

/// Of a container's status, or of the pod's.
Result<void> read_given(const Value& status, core::GivenRequests& target) {
  using G = core::GivenRequests;
  static constexpr Field<G> fields[]{
      {"allocatedResources", into<&G::allocated, read_optional<read_amounts, core::ResourceList>>},
      {"resources", into<&G::actuated, read_actuated>}};
  return read_fields(status, target, fields, UnknownKeys::pass_over);
}

Result<void> read_container_status(const Value& value, std::pair<std::string, core::GivenRequests>& target) {
  using S = std::pair<std::string, core::GivenRequests>;
  static constexpr Field<S> fields[]{{"name", into<&S::first>}};
  if (auto result = read_fields(value, target, fields, UnknownKeys::pass_over); !result) return result;
  return read_given(value, target.second);
}

Result<void> read_container_statuses(const Value& value, core::ResizeStatus& target) {
  std::vector<std::pair<std::string, core::GivenRequests>> statuses;
  if (auto result = read_list<read_container_status>(value, statuses); !result) return result;
  for (auto& [name, given] : statuses)
    if (!given.empty()) target.containers.emplace(std::move(name), std::move(given));
  return {};
}

struct PodCondition {
  std::string type{};
  std::string reason{};
};

Result<void> read_condition(const Value& value, PodCondition& target) {
  using C = PodCondition;
  static constexpr Field<C> fields[]{{"type", into<&C::type>}, {"reason", into<&C::reason>}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

Result<void> read_conditions(const Value& value, core::ResizeStatus& target) {
  std::vector<PodCondition> conditions;
  if (auto result = read_list<read_condition>(value, conditions); !result) return result;
  const auto pending = std::ranges::find(conditions, "PodResizePending", &PodCondition::type);
  target.infeasible = pending != conditions.end() && pending->reason == "Infeasible";
  return {};
}

Result<void> read_status(const Value& value, P& target) {
  static constexpr Field<P> fields[]{
      {"qosClass", into<&P::status_qos, read_qos_class>}, {"phase", into<&P::phase>}, {"reason", into<&P::reason>}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

/// After the rest of the pod, of which the status says what was given.
Result<void> read_given_requests(const Value& value, P& target) {
  static constexpr Field<core::ResizeStatus> resize_fields[]{{"containerStatuses", read_container_statuses},
                                                             {"initContainerStatuses", read_container_statuses},
                                                             {"conditions", read_conditions}};
  core::ResizeStatus resize;
  if (auto result = read_fields(value, resize, resize_fields, UnknownKeys::pass_over); !result) return result;
  if (auto result = read_given(value, resize.pod); !result) return result;
  core::apply_resize(target, resize);
  return {};
}

/// What the API server fills in when a pod is created.
void apply_defaults(P& pod) {
  if (pod.name_space.empty()) pod.name_space = "default";
  if (!pod.priority) pod.priority = priority_of_class(pod.priority_class_name);
  core::apply_request_defaults(pod);
}

/// An object of any kind, looked at from outside.
struct Object {
  std::optional<Value> api_version{};
  std::optional<Value> kind{};
  std::optional<Value> items{};
};

Result<Object> read_object(const Value& value) {
  static constexpr Field<Object> fields[]{
      {"apiVersion", keep<&Object::api_version>}, {"kind", keep<&Object::kind>}, {"items", keep<&Object::items>}};
  Object object;
  if (auto result = read_fields(value, object, fields, UnknownKeys::pass_over); !result)
    return std::unexpected(result.error());
  return object;
}

Result<void> expect(const std::optional<Value>& value, std::string_view expected) {
  if (!value) return {};
  const auto text = value->text();
  if (!text) return std::unexpected(text.error());
  if (*text == expected) return {};
  return std::unexpected(value->error(fmt::format("\"{}\" where \"{}\" is expected", *text, expected)));
}

bool is_list(const Object& object) {
  const auto kind = object.kind ? object.kind->text() : Result<std::string>();
  return kind && (*kind == "List" || *kind == "PodList");
}

Result<void> add_pod(const Value& value, Requests requests, std::vector<core::Pod>& pods) {
  auto pod = read_pod(value, requests);
  if (!pod) return std::unexpected(pod.error());
  pods.push_back(*std::move(pod));
  return {};
}

Result<void> add_pods(const Value& document, Requests requests, std::size_t most, std::vector<core::Pod>& pods) {
  const auto object = read_object(document);
  if (!object) return std::unexpected(object.error());
  if (!is_list(*object)) return add_pod(document, requests, pods);
  if (!object->items) return std::unexpected(missing(document, "items"));
  const auto items = object->items->items();
  if (!items) return std::unexpected(items.error());
  for (const auto& item : *items) {
    if (pods.size() >= most) break;
    if (auto result = add_pod(item, requests, pods); !result) return result;
  }
  return {};
}

/// One that Kubernetes has taken, which stands at `place`. A list's order changes, so a doubt names the pod instead.
Result<core::Pod> read_taken_pod(const Value& value, std::string_view origin, std::string place,
                                 std::vector<Error>& doubts) {
  const auto object = value.forgiving(std::move(place));
  auto pod = read_pod(object);
  const auto& forgiven = object.forgiven();
  if (!forgiven) return pod;
  if (!pod) return std::unexpected(*forgiven);
  const auto what = forgiven->message.substr(object.where().size());
  doubts.push_back(Error{fmt::format("{}: {}{}", origin, core::printable(pod->key()), what)});
  return pod;
}

}  // namespace

Result<core::Pod> read_pod(const Value& value, Requests requests) {
  const auto object = read_object(value);
  if (!object) return std::unexpected(object.error());
  if (auto result = expect(object->api_version, "v1"); !result) return std::unexpected(result.error());
  if (auto result = expect(object->kind, "Pod"); !result) return std::unexpected(result.error());

  static constexpr Field<P> fields[]{{"metadata", read_metadata}, {"spec", read_spec}};
  static constexpr Field<P> status_field[]{{"status", read_status}};
  static constexpr Field<P> given_field[]{{"status", read_given_requests}};
  P pod;
  if (auto result = read_fields(value, pod, fields, UnknownKeys::pass_over); !result)
    return std::unexpected(result.error());
  if (pod.name.empty()) return std::unexpected(missing(value, "metadata"));
  if (pod.containers.empty()) return std::unexpected(missing(value, "spec"));
  apply_defaults(pod);
  if (auto result = read_fields(value, pod, status_field, UnknownKeys::pass_over); !result)
    return std::unexpected(result.error());
  if (requests == Requests::Desired) return pod;
  if (auto result = read_fields(value, pod, given_field, UnknownKeys::pass_over); !result)
    return std::unexpected(result.error());
  return pod;
}

Result<std::vector<core::Pod>> parse_pods(std::string_view text, std::string_view origin, Requests requests,
                                          std::size_t most) {
  const auto documents = config::parse_yaml_documents(text, origin);
  if (!documents) return std::unexpected(documents.error());
  std::vector<core::Pod> pods;
  for (const auto& document : *documents) {
    if (pods.size() >= most) break;
    if (auto result = add_pods(document, requests, most, pods); !result) return std::unexpected(result.error());
  }
  if (pods.empty()) return fail(Error{"there is no pod in it"}, origin);
  return pods;
}

Result<core::Pod> parse_pod_json(std::string_view text, std::string_view origin, std::vector<Error>& doubts) {
  const auto document = config::parse_json(text, origin);
  if (!document) return std::unexpected(document.error());
  return read_taken_pod(*document, origin, std::string(origin), doubts);
}

Result<core::Pod> parse_pod_spec_json(std::string_view text, std::string_view origin, std::size_t most_elements) {
  const auto document = config::parse_json(text, origin, most_elements);
  if (!document) return std::unexpected(document.error());
  P pod;
  if (auto result = read_spec(*document, pod); !result) return std::unexpected(result.error());
  apply_defaults(pod);
  return pod;
}

Result<PodsRead> parse_pod_list_json(std::string_view text, std::string_view origin) {
  const auto document = config::parse_json(text, origin);
  if (!document) return std::unexpected(document.error());
  const auto object = read_object(*document);
  if (!object) return std::unexpected(object.error());
  if (!is_list(*object)) return std::unexpected(document->error("is no list of pods"));
  PodsRead read;
  if (!object->items || object->items->is_null()) return read;  // Go writes null for an empty list
  const auto items = object->items->items();
  if (!items) return std::unexpected(items.error());
  for (const auto& item : *items) {
    if (auto pod = read_taken_pod(item, origin, fmt::format("{}: {}", origin, item.path()), read.doubts))
      read.pods.push_back(*std::move(pod));
    else
      read.errors.push_back(pod.error());
  }
  return read;
}

}  // namespace evictd::pods
