#pragma once
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/pod.hpp"
#include "pods/combine.hpp"
#include "pods/spec_source.hpp"
#include "pods/trust.hpp"

namespace evictd::pods {

/// The sources of pod specs, and the runtime's pods completed by them. What the runtime lists is all there is: a source
/// only ever adds knowledge, and one that is missing or stale takes none away. On the reactor.
class Catalog {
 public:
  /// `node_name`: what the kubelet appends to the names of static pods; "" without a kubelet. `trusted`: whose pods are
  /// critical by their own word.
  Catalog(std::string node_name, TrustedNamespaces trusted)
      : node_name_{std::move(node_name)}, trusted_{std::move(trusted)} {}

  /// Before start(); in any order.
  void add(std::unique_ptr<SpecSource> source);

  /// Begins to look at the sources; once. The listener, told that pods would be completed otherwise now, outlives this
  /// or stop().
  void start(SpecListener& listener);
  void stop();

  /// The runtime's list, each pod with its best spec. Where nothing changed since the last call it is the last answer
  /// again: no more than a few comparisons. Sources that do not know a pod seen for the first time are told to look.
  [[nodiscard]] core::PodListPtr complete(const core::PodListPtr& listed);

  /// One pod that the runtime does not list yet, with its best spec. No source is told to look.
  [[nodiscard]] core::PodPtr complete(const core::PodPtr& asked_about);

  /// The same pod as it counts without any spec.
  [[nodiscard]] core::PodPtr without_spec(const core::PodPtr& asked_about) const;

  /// A pod of which nothing but the uid is certain, with its spec and its name if a source knows that uid.
  [[nodiscard]] core::PodPtr identify(const core::PodPtr& unlisted) const;

  /// The pod with this uid as the API server's watch has it; null where it does not know the pod, is behind or is not
  /// watched. As of the last complete(), and until the next.
  [[nodiscard]] const core::Pod* in_cluster(std::string_view uid) const;

  /// Whether a pod with this uid is known to any source, be it by the hash of its manifest. Also true while a source
  /// was never heard of: then nobody can say that there is no such pod. (kubelet: SourcesReady)
  [[nodiscard]] bool may_know(std::string_view uid) const;

  /// Who said since the last call that it is critical and is not believed, one line each. A pod is told of once.
  [[nodiscard]] std::vector<Error> take_warnings();

  /// One for each source, the richest first.
  [[nodiscard]] std::vector<SpecSourceStatus> status() const;

 private:
  void update_indices();
  void look_for_new(const core::PodList& listed);
  void compare(const core::PodPtr& listed, const core::PodPtr& completed);

  std::string node_name_;
  TrustedNamespaces trusted_;
  std::vector<std::unique_ptr<SpecSource>> sources_;  // the richest first
  std::vector<core::PodListPtr> indexed_;             // what the indices were made of
  std::vector<SpecIndex> indices_;                    // one for each source
  core::PodListPtr listed_;
  core::PodListPtr completed_;
  std::set<std::string, std::less<>> seen_;  // uids of the last list
  std::set<std::string> disbelieved_;        // uids
  std::vector<Error> warnings_;
};

}  // namespace evictd::pods
