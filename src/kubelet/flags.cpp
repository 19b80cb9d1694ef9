#include "kubelet/flags.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "core/number.hpp"

namespace json = boost::json;

namespace evictd::kubelet {
namespace {

enum class Kind : std::uint8_t {
  Text,
  Number,
  Boolean,
  List,        ///< "a,b"
  Map,         ///< "a=1,b=2"
  Switches,    ///< "a=true,b=false"
  Thresholds,  ///< "memory.available<100Mi,nodefs.available<10%"
  Reserved,    ///< "0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=2Gi"
  Taints,      ///< "key=value:NoSchedule,other:NoExecute"
};

struct Flag {
  std::string_view name;
  std::string_view field;
  Kind kind;
};

constexpr Flag known[]{
    {"eviction-hard", "evictionHard", Kind::Thresholds},
    {"eviction-soft", "evictionSoft", Kind::Thresholds},
    {"eviction-soft-grace-period", "evictionSoftGracePeriod", Kind::Map},
    {"eviction-minimum-reclaim", "evictionMinimumReclaim", Kind::Map},
    {"eviction-max-pod-grace-period", "evictionMaxPodGracePeriod", Kind::Number},
    {"eviction-pressure-transition-period", "evictionPressureTransitionPeriod", Kind::Text},
    {"enforce-node-allocatable", "enforceNodeAllocatable", Kind::List},
    {"local-storage-capacity-isolation", "localStorageCapacityIsolation", Kind::Boolean},
    {"kernel-memcg-notification", "kernelMemcgNotification", Kind::Boolean},
    {"minimum-image-ttl-duration", "imageMinimumGCAge", Kind::Text},
    {"allowed-unsafe-sysctls", "allowedUnsafeSysctls", Kind::List},
    {"topology-manager-policy", "topologyManagerPolicy", Kind::Text},
    {"topology-manager-scope", "topologyManagerScope", Kind::Text},
    {"topology-manager-policy-options", "topologyManagerPolicyOptions", Kind::Map},
    {"cpu-manager-policy", "cpuManagerPolicy", Kind::Text},
    {"cpu-manager-policy-options", "cpuManagerPolicyOptions", Kind::Map},
    {"memory-manager-policy", "memoryManagerPolicy", Kind::Text},
    {"reserved-memory", "reservedMemory", Kind::Reserved},
    {"register-with-taints", "registerWithTaints", Kind::Taints},
    {"reserved-cpus", "reservedSystemCPUs", Kind::Text},
    {"kube-reserved", "kubeReserved", Kind::Map},
    {"system-reserved", "systemReserved", Kind::Map},
    {"cgroup-driver", "cgroupDriver", Kind::Text},
    {"container-runtime-endpoint", "containerRuntimeEndpoint", Kind::Text},
    {"pod-manifest-path", "staticPodPath", Kind::Text},
    {"max-pods", "maxPods", Kind::Number},
    {"feature-gates", "featureGates", Kind::Switches},
};

std::vector<std::string_view> parts_of(std::string_view text, char separator = ',') {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t";
  const auto begin = std::min(text.find_first_not_of(blank), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(blank) + 1);
}

template <class Container>
Container& member(json::object& fields, std::string_view name) {
  auto& value = fields.emplace(name, Container{}).first->value();
  if constexpr (std::is_same_v<Container, json::array>)
    return value.as_array();
  else
    return value.as_object();
}

/// What stands before the separator, and behind it; absent without one.
struct Halves {
  std::string_view first;
  std::optional<std::string_view> second{};
};
Halves halves_of(std::string_view text, char separator) {
  const auto at = text.find(separator);
  if (at == std::string_view::npos) return {.first = text};
  return {.first = text.substr(0, at), .second = text.substr(at + 1)};
}

void add_entries(json::object& fields, std::string_view name, std::string_view value, char separator) {
  auto& entries = member<json::object>(fields, name);
  for (const auto part : parts_of(value))
    if (const auto at = part.find(separator); at != std::string_view::npos)
      entries[trimmed(part.substr(0, at))] = json::string(trimmed(part.substr(at + 1)));
}

/// (kubelet: ReservedMemoryVar)
void add_reservations(json::array& reservations, std::string_view value) {
  for (const auto part : parts_of(value, ';')) {
    const auto [node, limits] = halves_of(part, ':');
    const auto number = core::whole_number(trimmed(node));
    if (!number || !limits) continue;
    json::object reservation{{"numaNode", *number}};
    add_entries(reservation, "limits", *limits, '=');
    reservations.emplace_back(std::move(reservation));
  }
}

/// The last flag holds, whole. (kubelet: RegisterWithTaintsVar)
json::array taints_in(std::string_view value) {
  json::array taints;
  for (const auto part : parts_of(value)) {
    const auto [what, effect] = halves_of(part, ':');
    const auto [key, is] = halves_of(what, '=');
    json::object taint{{"key", key}};
    if (is) taint["value"] = *is;
    if (effect) taint["effect"] = *effect;
    taints.emplace_back(std::move(taint));
  }
  return taints;
}

/// As Go's strconv.ParseBool.
std::optional<bool> truth_of(std::string_view value) {
  for (const std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"})
    if (value == yes) return true;
  for (const std::string_view no : {"0", "f", "F", "false", "FALSE", "False"})
    if (value == no) return false;
  return std::nullopt;
}

/// What is no truth is passed over.
void add_switches(json::object& switches, std::string_view value) {
  for (const auto part : parts_of(value)) {
    const auto [name, is] = halves_of(part, '=');
    if (const auto truth = is ? truth_of(trimmed(*is)) : std::nullopt) switches[trimmed(name)] = *truth;
  }
}

void add(json::object& fields, const Flag& flag, std::string_view value) {
  switch (flag.kind) {
    case Kind::Text: fields[flag.field] = json::string(value); return;
    case Kind::Number:
      if (const auto number = core::whole_number(value)) fields[flag.field] = *number;
      return;
    case Kind::Boolean:
      if (const auto truth = truth_of(value)) fields[flag.field] = *truth;
      return;
    case Kind::List: {
      auto& list = member<json::array>(fields, flag.field);
      for (const auto part : parts_of(value)) list.emplace_back(json::string(part));
      return;
    }
    case Kind::Map: return add_entries(fields, flag.field, value, '=');
    case Kind::Switches: return add_switches(member<json::object>(fields, flag.field), value);
    case Kind::Thresholds: return add_entries(fields, flag.field, value, '<');
    case Kind::Reserved: return add_reservations(member<json::array>(fields, flag.field), value);
    case Kind::Taints: fields[flag.field] = taints_in(value); return;
  }
}

struct Written {
  std::string_view name;
  std::string_view value;
};

/// One flag, and how many words it takes. A value of its own is a word that is no flag.
std::pair<Written, std::size_t> written_at(std::span<const std::string> arguments) {
  std::string_view word = arguments.front();
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  if (const auto equals = word.find('='); equals != std::string_view::npos)
    return {{word.substr(0, equals), word.substr(equals + 1)}, 1};
  if (arguments.size() > 1 && !arguments[1].starts_with('-')) return {{word, arguments[1]}, 2};
  return {{word, "true"}, 1};
}

}  // namespace

Flags parse_flags(std::span<const std::string> arguments) {
  Flags flags;
  json::object fields;
  bool without_copies = false;  // no threshold is copied to allocatableMemory.available
  while (!arguments.empty()) {
    if (!arguments.front().starts_with('-')) {
      arguments = arguments.subspan(1);
      continue;
    }
    const auto [written, words] = written_at(arguments);
    arguments = arguments.subspan(words);
    const auto value = written.value;
    std::string name{written.name};
    std::ranges::replace(name, '_', '-');  // WordSepNormalizeFunc
    if (name == "config") flags.config = value;
    if (name == "config-dir") flags.drop_ins = value;
    if (name == "kubelet-args-file") flags.arguments_file = value;
    if (name == "experimental-allocatable-ignore-eviction") without_copies = truth_of(value).value_or(without_copies);
    if (const auto* flag = std::ranges::find(known, name, &Flag::name); flag != std::ranges::end(known))
      add(fields, *flag, value);
  }
  // As if nothing were enforced, which is all that evictd asks of this field. (kubelet: NewMainKubelet)
  if (without_copies) fields["enforceNodeAllocatable"] = json::array{};
  if (!fields.empty()) flags.fields = std::make_shared<const json::value>(std::move(fields));
  return flags;
}

}  // namespace evictd::kubelet
