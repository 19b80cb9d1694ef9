#include "pods/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/static_pod.hpp"

namespace evictd::pods {

void Catalog::add(std::unique_ptr<SpecSource> source) {
  const auto place =
      std::ranges::upper_bound(sources_, source->origin(), {}, [](const auto& s) { return s->origin(); });
  sources_.insert(place, std::move(source));
}

void Catalog::start(SpecListener& listener) {
  for (const auto& source : sources_) source->start(listener);
}

void Catalog::stop() {
  for (const auto& source : sources_) source->stop();
}

core::PodListPtr Catalog::complete(const core::PodListPtr& listed) {
  const bool same_specs = std::ranges::equal(sources_, indexed_, {}, [](const auto& s) { return s->pods(); });
  if (same_specs && listed == listed_ && completed_) return completed_;
  if (!same_specs) update_indices();
  completed_ = combine(*listed, indices_, trusted_);
  if (*completed_ == *listed) completed_ = listed;
  for (std::size_t i = 0; i < listed->size(); ++i) compare((*listed)[i], (*completed_)[i]);
  if (listed != listed_) look_for_new(*listed);
  listed_ = listed;
  return completed_;
}

core::PodPtr Catalog::complete(const core::PodPtr& asked_about) {
  if (!std::ranges::equal(sources_, indexed_, {}, [](const auto& s) { return s->pods(); })) update_indices();
  auto completed = combine(asked_about, indices_, trusted_);
  compare(asked_about, completed);
  return completed;
}

core::PodPtr Catalog::without_spec(const core::PodPtr& asked_about) const { return combine(asked_about, {}, trusted_); }

/// A warning about a pod is repeated once there were warnings about so many others: many more than ever run at a time.
void Catalog::compare(const core::PodPtr& listed, const core::PodPtr& completed) {
  constexpr std::size_t most_remembered = 10'000;
  if (trusted_.contains(listed->name_space) || !core::is_critical(*listed) || core::is_critical(*completed)) return;
  if (disbelieved_.size() >= most_remembered) disbelieved_.clear();
  if (!disbelieved_.insert(listed->uid).second) return;
  warnings_.push_back({fmt::format(
      "pod {}: says by its annotations or labels that it is critical, which is not believed; if whoever makes pods in "
      "this namespace may decide that, name it in podSources.trustedNamespaces",
      listed->key())});
}

std::vector<Error> Catalog::take_warnings() { return std::exchange(warnings_, {}); }

void Catalog::update_indices() {
  completed_.reset();  // it was made of others
  indexed_.clear();
  indices_.clear();
  for (const auto& source : sources_) {
    indexed_.push_back(source->pods());
    indices_.emplace_back(Specs{source->origin(), source->pods()}, node_name_);
  }
}

/// A pod that no source knows is looked for once, not at every listing.
void Catalog::look_for_new(const core::PodList& listed) {
  std::set<std::string, std::less<>> uids;
  for (const auto& pod : listed) {
    uids.insert(pod->uid);
    if (seen_.contains(pod->uid)) continue;
    for (std::size_t i = 0; i < sources_.size(); ++i)
      if (indices_[i].by_identity(*pod) == nullptr && indices_[i].by_name(*pod) == nullptr) sources_[i]->look();
  }
  seen_.swap(uids);
}

core::PodPtr Catalog::identify(const core::PodPtr& unlisted) const {
  for (const auto& index : indices_) {
    const auto* spec = index.by_uid(unlisted->uid);
    if (spec == nullptr) continue;
    auto pod = with_spec(*unlisted, *spec);
    pod.name_space = spec->name_space;
    pod.name = spec->name;
    if (!trusted_.contains(pod.name_space)) drop_claims_of_spec(pod, *spec, index.origin());
    return std::make_shared<const core::Pod>(std::move(pod));
  }
  return unlisted;
}

const core::Pod* Catalog::in_cluster(std::string_view uid) const {
  for (std::size_t i = 0; i < indices_.size(); ++i)
    if (sources_[i]->origin() == SpecOrigin::ApiServer)
      return sources_[i]->status().state == SpecSourceStatus::State::Synced ? indices_[i].by_uid(uid) : nullptr;
  return nullptr;
}

bool Catalog::may_know(std::string_view uid) const {
  const auto is_meant = [&](const core::PodPtr& pod) {
    const auto says = [&](std::string_view key) {
      const auto found = pod->annotations.find(key);
      return found != pod->annotations.end() && found->second == uid;
    };
    return pod->uid == uid || says(core::config_hash) || says(core::config_mirror);
  };
  return std::ranges::any_of(sources_, [&](const auto& source) {
    return !source->status().last_contact || std::ranges::any_of(*source->pods(), is_meant);
  });
}

std::vector<SpecSourceStatus> Catalog::status() const {
  std::vector<SpecSourceStatus> statuses;
  for (const auto& source : sources_) statuses.push_back(source->status());
  return statuses;
}

}  // namespace evictd::pods
