#include "config/kubelet_configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "admission/sysctl_allowlist.hpp"
#include "config/fields.hpp"
#include "config/nearest.hpp"
#include "config/shutdown_groups.hpp"
#include "core/threshold_overlay.hpp"

namespace evictd::config {
namespace {

using core::EvictionSettings;

/// Where keys stand, by the path with which the core names them: "evictionHard: memory.available".
using Lines = std::map<std::string, Value, std::less<>>;

/// Entry by entry (RFC 7386). A null value never gets here, a null entry does.
template <class T>
Result<void> merge(const Value& value, std::map<std::string, T, std::less<>>& target) {
  const auto entries = value.entries(": ");
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [key, entry] : *entries) {
    if (entry.is_null()) {
      target.erase(key);
    } else if (auto result = read(entry, target[key]); !result) {
      return result;
    }
  }
  return {};
}

Result<void> merge(const Value& value, std::optional<EvictionSettings::BySignal>& target) {
  if (!target) target.emplace();
  return merge(value, *target);
}

constexpr std::string_view hard_thresholds = "evictionHard";
constexpr std::string_view feature_gates = "featureGates";
constexpr std::string_view merge_defaults = "mergeDefaultEvictionSettings";

/// What the file of --config leaves open is filled in before anything comes on top. (kubelet 1.36: loadConfigFile)
void fill_defaults_in(EvictionSettings& eviction) {
  eviction.hard = core::hard_in_force(eviction);
  eviction.merge_defaults = false;
}

template <auto Member>
Result<void> into_eviction(const Value& value, KubeletConfiguration& target) {
  return read(value, target.eviction.*Member);
}

template <auto Member>
Result<void> merge_into_eviction(const Value& value, KubeletConfiguration& target) {
  return merge(value, target.eviction.*Member);
}

template <auto Member>
Result<void> merge_into(const Value& value, KubeletConfiguration& target) {
  return merge(value, target.*Member);
}

Result<void> read_grace_period(const Value& value, PriorityGracePeriod& target) {
  using G = PriorityGracePeriod;
  static constexpr Field<G> fields[]{{"priority", into<&G::priority>},
                                     {"shutdownGracePeriodSeconds", into<&G::shutdown_grace_period_seconds>}};
  return read_fields(value, target, fields, UnknownKeys::reject);
}

Result<void> read_reservation(const Value& value, MemoryReservation& target) {
  using M = MemoryReservation;
  static constexpr Field<M> fields[]{{"numaNode", into<&M::numa_node>}, {"limits", into<&M::limits>}};
  return read_fields(value, target, fields, UnknownKeys::reject);
}

Result<void> read_image_age(const Value& value, core::Duration& target) {
  core::Duration age{};
  if (auto result = read(value, age); !result) return result;
  target = age == core::Duration::zero() ? KubeletConfiguration{}.image_minimum_gc_age : age;
  return {};
}

Result<void> read_taint(const Value& value, core::Taint& target) {
  using T = core::Taint;
  static constexpr Field<T> fields[]{{"key", into<&T::key>}, {"value", into<&T::value>}, {"effect", into<&T::effect>}};
  // timeAdded is the API server's.
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

/// One that could open the host's own sysctls to pods keeps the node from starting.
Result<void> read_sysctl(const Value& value, std::string& target) {
  if (auto result = read(value, target); !result) return result;
  const auto allowlist = admission::SysctlAllowlist::make({target});
  return allowlist ? Result<void>{} : std::unexpected(value.error(allowlist.error()));
}

using K = KubeletConfiguration;

struct KubeletField : Field<K> {
  bool eviction = false;                                       ///< a name close to it must be it, misspelt
  bool (*is_same)(const K& before, const K& after) = nullptr;  ///< none: `eviction` has it
  Result<void> (*merge)(const Value&, K&) = nullptr;           ///< of a mapping; none: what comes later replaces it
  void (*reset)(K&) = nullptr;                                 ///< to what it is where nobody says anything
};
constexpr bool eviction = true;

template <auto Member>
bool is_same(const K& before, const K& after) {
  return before.*Member == after.*Member;
}

template <auto Member>
void reset(K& target) {
  const K defaults;  // GCC 12 breaks down over a temporary here
  target.*Member = defaults.*Member;
}

template <auto Member>
void reset_eviction(K& target) {
  const EvictionSettings defaults;
  target.eviction.*Member = defaults.*Member;
}

/// `Read`: where the member's type does not say how it is read.
template <auto Member, auto... Read>
constexpr KubeletField row(std::string_view key) {
  return {{key, into<Member, Read...>}, false, is_same<Member>, nullptr, reset<Member>};
}

template <auto Member>
constexpr KubeletField map_row(std::string_view key) {
  return {{key, into<Member>}, false, is_same<Member>, merge_into<Member>, reset<Member>};
}

template <auto Member>
constexpr KubeletField thresholds_row(std::string_view key) {
  return {{key, into_eviction<Member>}, eviction, nullptr, merge_into_eviction<Member>, reset_eviction<Member>};
}

template <auto Member>
constexpr KubeletField eviction_row(std::string_view key) {
  return {{key, into_eviction<Member>}, eviction, nullptr, nullptr, reset_eviction<Member>};
}

constexpr KubeletField kubelet_fields[]{
    thresholds_row<&EvictionSettings::hard>(hard_thresholds),
    thresholds_row<&EvictionSettings::soft>("evictionSoft"),
    thresholds_row<&EvictionSettings::soft_grace_period>("evictionSoftGracePeriod"),
    thresholds_row<&EvictionSettings::minimum_reclaim>("evictionMinimumReclaim"),
    eviction_row<&EvictionSettings::max_pod_grace_period_seconds>("evictionMaxPodGracePeriod"),
    eviction_row<&EvictionSettings::pressure_transition_period>("evictionPressureTransitionPeriod"),
    eviction_row<&EvictionSettings::merge_defaults>(merge_defaults),
    eviction_row<&EvictionSettings::enforce_node_allocatable>("enforceNodeAllocatable"),
    eviction_row<&EvictionSettings::local_storage_capacity_isolation>("localStorageCapacityIsolation"),
    // A change of it changes nothing here: what wakes evictd is a matter of notifier.disable.
    {{"kernelMemcgNotification", into<&K::kernel_memcg_notification>},
     eviction,
     nullptr,
     nullptr,
     reset<&K::kernel_memcg_notification>},
    row<&K::image_minimum_gc_age, read_image_age>("imageMinimumGCAge"),
    row<&K::allowed_unsafe_sysctls, read_list<read_sysctl, std::string>>("allowedUnsafeSysctls"),
    row<&K::register_with_taints, read_list<read_taint, core::Taint>>("registerWithTaints"),
    row<&K::shutdown_grace_period>("shutdownGracePeriod"),
    row<&K::shutdown_grace_period_critical_pods>("shutdownGracePeriodCriticalPods"),
    row<&K::shutdown_grace_period_by_pod_priority, read_list<read_grace_period, PriorityGracePeriod>>(
        "shutdownGracePeriodByPodPriority"),
    row<&K::topology_manager_policy>("topologyManagerPolicy"),
    row<&K::topology_manager_scope>("topologyManagerScope"),
    map_row<&K::topology_manager_policy_options>("topologyManagerPolicyOptions"),
    row<&K::cpu_manager_policy>("cpuManagerPolicy"),
    map_row<&K::cpu_manager_policy_options>("cpuManagerPolicyOptions"),
    row<&K::memory_manager_policy>("memoryManagerPolicy"),
    row<&K::reserved_memory, read_list<read_reservation, MemoryReservation>>("reservedMemory"),
    row<&K::reserved_system_cpus>("reservedSystemCPUs"),
    map_row<&K::kube_reserved>("kubeReserved"),
    map_row<&K::system_reserved>("systemReserved"),
    row<&K::cgroup_driver>("cgroupDriver"),
    row<&K::container_runtime_endpoint>("containerRuntimeEndpoint"),
    row<&K::pod_logs_dir>("podLogsDir"),
    row<&K::static_pod_path>("staticPodPath"),
    row<&K::max_pods>("maxPods"),
    map_row<&K::feature_gates>(feature_gates),
};

/// The eviction field that an unknown key was meant to be. Every field that begins with "eviction" is in the table, so
/// whatever else does is misspelt.
std::optional<std::string_view> misspelt_eviction_field(std::string_view key) {
  std::vector<std::string_view> names;
  for (const auto& field : kubelet_fields)
    if (field.eviction) names.push_back(field.key);
  if (const auto name = nearest(key, names)) {
    // Stricter than a mere suggestion: the kubelet has fields of its own, and will have more.
    constexpr std::size_t surely_meant = 3;
    if (edit_distance(key, *name) <= surely_meant) return name;
  }
  constexpr std::string_view prefix = "eviction";
  if (edit_distance(key.substr(0, prefix.size()), prefix) > 0) return std::nullopt;
  return *std::ranges::min_element(names, {},
                                   [&](std::string_view name) { return edit_distance(key.substr(0, 64), name); });
}

/// What the core objects to, "KEY: … : what", with the line where the longest such key stands.
std::unexpected<Error> located(const Error& error, const Value& mapping, const Lines& lines) {
  const auto& message = error.message;
  for (auto end = message.rfind(": "); end != std::string::npos && end > 0; end = message.rfind(": ", end - 1))
    if (const auto at = lines.find(std::string_view(message).substr(0, end)); at != lines.end())
      return std::unexpected(at->second.error(std::string_view(message).substr(end + 2)));
  return std::unexpected(mapping.error(error));
}

/// Lets the core judge values and their relations.
Result<void> check(const KubeletConfiguration& configuration, const Value& mapping, const Lines& lines) {
  if (const auto policy = core::make_policy(configuration.eviction); !policy)
    return located(policy.error(), mapping, lines);
  if (const auto groups = shutdown_groups(configuration); !groups) return located(groups.error(), mapping, lines);
  return {};
}

}  // namespace

void KubeletLayers::forget(const std::string& key) {
  lines_.erase(key);
  std::erase_if(lines_, [prefix = key + ": "](const auto& line) { return line.first.starts_with(prefix); });
}

void KubeletLayers::remember(const std::string& key, const Value& value, Layer layer) {
  const auto prefix = key + ": ";
  if (layer != Layer::Merge) forget(key);
  lines_.insert_or_assign(key, value);
  if (const auto entries = value.entries(": "))
    for (const auto& entry : *entries) lines_.insert_or_assign(prefix + entry.key, entry.value);
}

Result<void> KubeletLayers::add(const Value& mapping, Layer layer) {
  const auto entries = mapping.entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [key, value] : *entries) {
    const auto field = std::ranges::find(kubelet_fields, key, &KubeletField::key);
    if (field == std::ranges::end(kubelet_fields)) {
      if (const auto meant = misspelt_eviction_field(key))
        return std::unexpected(value.error(fmt::format("unknown key; did you mean \"{}\"?", *meant)));
      continue;
    }
    if (value.is_null() && layer != Layer::Merge) continue;
    if (layer != Layer::Replace) {
      if (key == merge_defaults) continue;  // it has had its effect, or never has one
      if (key == hard_thresholds) fill_defaults_in(configuration_.eviction);
    }
    if (value.is_null()) {
      // No defaults come in behind a drop-in.
      field->reset(configuration_);
      if (key == hard_thresholds) configuration_.eviction.hard.emplace();
      forget(key);
      continue;
    }
    // What of these is not among the flags stays as it was. (kubelet: kubeletConfigFlagPrecedence)
    const bool merges = layer == Layer::Merge || (layer == Layer::Override && key == feature_gates);
    const auto read = merges && field->merge != nullptr ? field->merge : field->read;
    if (const auto result = read(value, configuration_); !result) return std::unexpected(result.error());
    remember(key, value, merges ? Layer::Merge : layer);
  }
  last_ = mapping;
  return {};
}

Result<KubeletConfiguration> KubeletLayers::finish() const {
  if (last_)
    if (const auto checked = check(configuration_, *last_, lines_); !checked) return std::unexpected(checked.error());
  return configuration_;
}

Origins KubeletLayers::origins() const {
  Origins origins;
  for (const auto& [key, value] : lines_) origins.emplace(key, value.where());
  return origins;
}

Result<KubeletConfiguration> read_kubelet_configuration(const Value& mapping) {
  KubeletLayers layers;
  if (const auto added = layers.add(mapping, Layer::Replace); !added) return std::unexpected(added.error());
  return layers.finish();
}

Result<std::optional<Value>> parse_kubelet_document(std::string_view text, std::string_view origin) {
  const auto document = parse_yaml(text, origin);
  if (!document) return std::unexpected(document.error());
  if (document->is_null()) return std::nullopt;
  if (const auto header = check_header(*document, "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"); !header)
    return std::unexpected(header.error());
  return *document;
}

Result<KubeletConfiguration> parse_kubelet_configuration(std::string_view text, std::string_view origin) {
  const auto document = parse_kubelet_document(text, origin);
  if (!document) return std::unexpected(document.error());
  if (!*document) return KubeletConfiguration{};
  return read_kubelet_configuration(**document);
}

std::vector<std::string> changed_keys(const KubeletConfiguration& before, const KubeletConfiguration& after) {
  std::vector<std::string> keys;
  for (const auto& field : kubelet_fields)
    if (field.is_same != nullptr && !field.is_same(before, after)) keys.emplace_back(field.key);
  return keys;
}

Result<KubeletConfiguration> load_kubelet_configuration(const std::filesystem::path& path) {
  const auto text = read_text_file(path);
  if (!text) return std::unexpected(text.error());
  return parse_kubelet_configuration(*text, path.string());
}

}  // namespace evictd::config
