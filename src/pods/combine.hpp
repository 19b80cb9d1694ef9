#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/pod.hpp"
#include "pods/spec_source.hpp"
#include "pods/trust.hpp"

// The pods that the runtime lists, each with the best spec that anybody has of it. Pure.
namespace evictd::pods {

/// What one source knows.
struct Specs {
  SpecOrigin origin = SpecOrigin::ApiServer;
  core::PodListPtr pods = std::make_shared<core::PodList>();  ///< never null
};

/// Finds a listed pod's spec among those of one source.
class SpecIndex {
 public:
  /// `node_name`: what the kubelet appends to the names of static pods. Keeps the specs alive.
  SpecIndex(Specs specs, std::string_view node_name);

  [[nodiscard]] SpecOrigin origin() const { return specs_.origin; }

  /// The spec of this very pod; null if there is none. By the uid; that of a static pod is the kubelet's hash of its
  /// manifest (annotation kubernetes.io/config.hash), which its mirror pod, itself of another uid, carries in
  /// kubernetes.io/config.mirror.
  [[nodiscard]] const core::Pod* by_identity(const core::Pod& listed) const;

  /// The spec with this very uid; null if there is none.
  [[nodiscard]] const core::Pod* by_uid(std::string_view uid) const;

  /// The spec that by its namespace and name must be this pod's, where uids do not tell; null if there is none. Another
  /// uid is another pod, unless both are static: then it is the same pod of an older or newer manifest. A manifest
  /// without a uid is that of any pod but one from the API server; where no kubelet has its hand in, also under the
  /// name that the manifest itself says.
  [[nodiscard]] const core::Pod* by_name(const core::Pod& listed) const;

 private:
  using Index = std::map<std::string_view, const core::Pod*, std::less<>>;

  Specs specs_;
  std::string suffix_;  // "-NODENAME"
  Index by_uid_;
  Index by_mirrored_hash_;
  std::map<std::string, const core::Pod*, std::less<>> by_key_;
};

/// The listed pod with all that its spec says: containers, pod-level resources, overhead, volumes, tolerations, labels;
/// priority, priority class, grace period and QoS class where it says them. Uid and name stay the runtime's, and so
/// does whether it is static: the spec's annotations add to those it runs with and replace all but the kubelet's own.
[[nodiscard]] core::Pod with_spec(core::Pod listed, const core::Pod& spec);

/// All listed pods, none more and none less, in their order. `sources`: the richest first. A source that knows a pod by
/// its uid goes before all that know it by its name only. A pod of which no source knows a spec stays as it is, but
/// that one of a namespace that is not trusted is not critical by its own word (pods/trust.hpp). 110 pods and the index
/// of one source: 0.3 ms.
[[nodiscard]] core::PodListPtr combine(const core::PodList& listed, std::span<const SpecIndex> sources,
                                       const TrustedNamespaces& trusted);

/// The same for one pod.
[[nodiscard]] core::PodPtr combine(const core::PodPtr& listed, std::span<const SpecIndex> sources,
                                   const TrustedNamespaces& trusted);

}  // namespace evictd::pods
