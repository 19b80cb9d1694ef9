#include "pods/combine.hpp"

#include <memory>
#include <utility>

#include "core/static_pod.hpp"
#include "pods/manifest_placement.hpp"
#include "pods/static_name.hpp"

namespace evictd::pods {
namespace {

bool is_from_api(const core::Pod& pod) { return core::annotation(pod, core::config_source) == core::source_api; }

bool is_static_or_mirror(const core::Pod& pod) {
  return core::names_static_source(pod) || pod.annotations.contains(core::config_mirror);
}

/// Whether a kubelet gave the pod to the runtime.
bool is_kubelets(const core::Pod& pod) {
  return pod.annotations.contains(core::config_source) || pod.annotations.contains(core::config_hash);
}

template <class Index>
const core::Pod* find(const Index& index, std::string_view key) {
  const auto found = index.find(key);
  return found == index.end() ? nullptr : found->second;
}

struct FoundSpec {
  const core::Pod* spec = nullptr;  // null: no source knows one
  SpecOrigin origin{};
};

FoundSpec spec_of(const core::Pod& listed, std::span<const SpecIndex> sources) {
  for (const auto& source : sources)
    if (const auto* spec = source.by_identity(listed)) return {spec, source.origin()};
  for (const auto& source : sources)
    if (const auto* spec = source.by_name(listed)) return {spec, source.origin()};
  return {};
}

}  // namespace

SpecIndex::SpecIndex(Specs specs, std::string_view node_name)
    : specs_{std::move(specs)}, suffix_{static_suffix(node_name)} {
  for (const auto& pod : *specs_.pods) {
    if (!pod->uid.empty()) by_uid_.emplace(pod->uid, pod.get());
    if (const auto hash = core::annotation(*pod, core::config_mirror); !hash.empty())
      by_mirrored_hash_.emplace(hash, pod.get());
    by_key_.emplace(pod->key(), pod.get());
  }
}

const core::Pod* SpecIndex::by_uid(std::string_view uid) const { return find(by_uid_, uid); }

const core::Pod* SpecIndex::by_identity(const core::Pod& listed) const {
  if (const auto* spec = by_uid(listed.uid)) return spec;
  for (const auto hash : {core::annotation(listed, core::config_hash), std::string_view(listed.uid)}) {
    // Any user may write annotations: a mirror pod has the name of its static pod.
    const auto* mirror = hash.empty() || is_from_api(listed) ? nullptr : find(by_mirrored_hash_, hash);
    if (mirror != nullptr && mirror->key() == listed.key()) return mirror;
  }
  return nullptr;
}

const core::Pod* SpecIndex::by_name(const core::Pod& listed) const {
  const auto key = listed.key();
  const auto* spec = find(by_key_, key);
  const bool manifests = specs_.origin == SpecOrigin::Manifests;
  if (spec == nullptr && manifests && !is_kubelets(listed)) spec = find(by_key_, key + suffix_);
  if (spec == nullptr) return nullptr;
  const bool fits = spec->uid.empty() ? !is_from_api(listed)
                                      : is_static_or_mirror(listed) && (manifests || is_static_or_mirror(*spec));
  return fits ? spec : nullptr;
}

core::Pod with_spec(core::Pod listed, const core::Pod& spec) {
  for (const auto& [key, value] : spec.annotations) {
    const bool kept = key == core::config_source || key == core::config_hash;
    if (kept)
      listed.annotations.emplace(key, value);
    else
      listed.annotations.insert_or_assign(key, value);
  }
  listed.labels = spec.labels;
  if (!spec.containers.empty()) {
    listed.init_containers = spec.init_containers;
    listed.containers = spec.containers;
    listed.host_ports.clear();  // theirs
  }
  listed.resources = spec.resources;
  listed.overhead = spec.overhead;
  listed.taken = spec.taken;
  listed.volumes = spec.volumes;
  listed.volumes_are_claimed = spec.volumes_are_claimed;
  listed.tolerations = spec.tolerations;
  take_placement(listed, spec);
  if (spec.priority) listed.priority = spec.priority;
  if (!spec.priority_class_name.empty()) listed.priority_class_name = spec.priority_class_name;
  if (spec.termination_grace_period_seconds)
    listed.termination_grace_period_seconds = spec.termination_grace_period_seconds;
  if (spec.status_qos) listed.status_qos = spec.status_qos;
  if (!spec.phase.empty()) listed.phase = spec.phase;
  return listed;
}

core::PodPtr combine(const core::PodPtr& listed, std::span<const SpecIndex> sources, const TrustedNamespaces& trusted) {
  // By what it says of itself it is found; only then is it asked what of that counts.
  const auto [spec, origin] = spec_of(*listed, sources);
  const bool is_trusted = trusted.contains(listed->name_space);
  if (spec == nullptr && (is_trusted || !has_claims(*listed))) return listed;
  auto pod = *listed;
  if (!is_trusted) drop_claims(pod, spec, origin);
  if (spec != nullptr) pod = with_spec(std::move(pod), *spec);
  if (spec != nullptr && !is_trusted) drop_claims_of_spec(pod, *spec, origin);
  return std::make_shared<const core::Pod>(std::move(pod));
}

core::PodListPtr combine(const core::PodList& listed, std::span<const SpecIndex> sources,
                         const TrustedNamespaces& trusted) {
  auto result = std::make_shared<core::PodList>();
  result->reserve(listed.size());
  for (const auto& pod : listed) result->push_back(combine(pod, sources, trusted));
  return result;
}

}  // namespace evictd::pods
