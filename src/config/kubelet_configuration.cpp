#include "config/kubelet_configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "admission/sysctl_allowlist.hpp"
#include "config/fields.hpp"
#include "config/nearest.hpp"
#include "config/shutdown_groups.hpp"

namespace evictd::config {
namespace {

using core::EvictionSettings;

/// Where keys stand, by the path with which the core names them: "evictionHard: memory.available".
using Lines = std::map<std::string, Value, std::less<>>;

template <auto Member>
Result<void> into_eviction(const Value& value, KubeletConfiguration& target) {
  return read(value, target.eviction.*Member);
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

Result<void> read_taint(const Value& value, admission::Taint& target) {
  using T = admission::Taint;
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
};
constexpr bool eviction = true;

template <auto Member>
bool is_same(const K& before, const K& after) {
  return before.*Member == after.*Member;
}

/// `Read`: where the member's type does not say how it is read.
template <auto Member, auto... Read>
constexpr KubeletField row(std::string_view key, bool eviction = false) {
  return {{key, into<Member, Read...>}, eviction, is_same<Member>};
}

constexpr KubeletField kubelet_fields[]{
    {{"evictionHard", into_eviction<&EvictionSettings::hard>}, eviction},
    {{"evictionSoft", into_eviction<&EvictionSettings::soft>}, eviction},
    {{"evictionSoftGracePeriod", into_eviction<&EvictionSettings::soft_grace_period>}, eviction},
    {{"evictionMinimumReclaim", into_eviction<&EvictionSettings::minimum_reclaim>}, eviction},
    {{"evictionMaxPodGracePeriod", into_eviction<&EvictionSettings::max_pod_grace_period_seconds>}, eviction},
    {{"evictionPressureTransitionPeriod", into_eviction<&EvictionSettings::pressure_transition_period>}, eviction},
    {{"mergeDefaultEvictionSettings", into_eviction<&EvictionSettings::merge_defaults>}, eviction},
    {{"enforceNodeAllocatable", into_eviction<&EvictionSettings::enforce_node_allocatable>}, eviction},
    {{"localStorageCapacityIsolation", into_eviction<&EvictionSettings::local_storage_capacity_isolation>}, eviction},
    row<&K::kernel_memcg_notification>("kernelMemcgNotification", eviction),
    row<&K::allowed_unsafe_sysctls, read_list<read_sysctl, std::string>>("allowedUnsafeSysctls"),
    row<&K::register_with_taints, read_list<read_taint, admission::Taint>>("registerWithTaints"),
    row<&K::shutdown_grace_period>("shutdownGracePeriod"),
    row<&K::shutdown_grace_period_critical_pods>("shutdownGracePeriodCriticalPods"),
    row<&K::shutdown_grace_period_by_pod_priority, read_list<read_grace_period, PriorityGracePeriod>>(
        "shutdownGracePeriodByPodPriority"),
    row<&K::topology_manager_policy>("topologyManagerPolicy"),
    row<&K::topology_manager_scope>("topologyManagerScope"),
    row<&K::topology_manager_policy_options>("topologyManagerPolicyOptions"),
    row<&K::cpu_manager_policy>("cpuManagerPolicy"),
    row<&K::cpu_manager_policy_options>("cpuManagerPolicyOptions"),
    row<&K::memory_manager_policy>("memoryManagerPolicy"),
    row<&K::reserved_memory, read_list<read_reservation, MemoryReservation>>("reservedMemory"),
    row<&K::reserved_system_cpus>("reservedSystemCPUs"),
    row<&K::kube_reserved>("kubeReserved"),
    row<&K::system_reserved>("systemReserved"),
    row<&K::cgroup_driver>("cgroupDriver"),
    row<&K::container_runtime_endpoint>("containerRuntimeEndpoint"),
    row<&K::pod_logs_dir>("podLogsDir"),
    row<&K::static_pod_path>("staticPodPath"),
    row<&K::max_pods>("maxPods"),
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

void remember(Lines& lines, const std::string& key, const Value& value) {
  lines.emplace(key, value);
  if (const auto entries = value.entries(": "))
    for (const auto& entry : *entries) lines.emplace(fmt::format("{}: {}", key, entry.key), entry.value);
}

}  // namespace

Result<KubeletConfiguration> read_kubelet_configuration(const Value& mapping) {
  KubeletConfiguration configuration;
  Lines lines;
  const auto entries = mapping.entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [key, value] : *entries) {
    const auto field = std::ranges::find(kubelet_fields, key, &KubeletField::key);
    if (field == std::ranges::end(kubelet_fields)) {
      if (const auto meant = misspelt_eviction_field(key))
        return std::unexpected(value.error(fmt::format("unknown key; did you mean \"{}\"?", *meant)));
      continue;
    }
    if (value.is_null()) continue;
    if (const auto result = field->read(value, configuration); !result) return std::unexpected(result.error());
    remember(lines, key, value);
  }
  if (const auto checked = check(configuration, mapping, lines); !checked) return std::unexpected(checked.error());
  return configuration;
}

Result<KubeletConfiguration> parse_kubelet_configuration(std::string_view text, std::string_view origin) {
  const auto document = parse_yaml(text, origin);
  if (!document) return std::unexpected(document.error());
  if (document->is_null()) return KubeletConfiguration{};
  if (const auto header = check_header(*document, "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"); !header)
    return std::unexpected(header.error());
  return read_kubelet_configuration(*document);
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
