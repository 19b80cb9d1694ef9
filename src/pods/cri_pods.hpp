#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/pod.hpp"
#include "cri/client.hpp"
#include "cri/reply.hpp"
#include "pods/cgroup_name.hpp"
#include "pods/listed_pods.hpp"
#include "pods/runtime_pod.hpp"
#include "pods/trust.hpp"

namespace evictd::pods {

/// The node's pods as the container runtime alone knows them.
///
/// A pod is a READY sandbox (of several with one uid, the latest) with its containers; requests, QoS class and priority
/// are inferred (pods/infer.hpp). Between refreshes the snapshot stands still, so a part that must decide at once reads
/// it without a call to the runtime. For the reactor's thread; the client must outlive it, and it must outlive its
/// coroutines.
class CriPods {
 public:
  /// `memory_capacity`: the node's, in bytes, > 0; the scale of the containers' oom_score_adj. `trusted`: whose
  /// annotated specs are believed as they are.
  CriPods(cri::Client& client, std::int64_t memory_capacity, TrustedNamespaces trusted)
      : client_(client), memory_capacity_(memory_capacity), trusted_(std::move(trusted)) {}

  class Snapshot;

  /// Lists sandboxes and containers (two calls), and reads the verbose status of those that are new, once each (a
  /// container's again when it has started). What vanishes meanwhile is left out. A pod of which all
  /// statuses were read and the lists say what they said before is taken over as it is.
  ///
  /// Fails if a list cannot be had or the runtime goes away. A single status that cannot be had or read costs only the
  /// knowledge in it: the pod is there, a warning says so, and the next one tries again.
  boost::asio::awaitable<Result<Snapshot>> fetch();
  /// Makes it the snapshot that counts. Of calls of fetch() that overlap the one that began last decides.
  void publish(Snapshot snapshot);
  /// Both. What fails leaves the snapshot as it was.
  boost::asio::awaitable<Result<void>> refresh();

  /// The snapshot, in the order of the sandboxes' creation: the same list for as long as nothing in it changes. Empty
  /// before the first refresh, never null.
  [[nodiscard]] core::PodListPtr pods() const { return pods_; }
  [[nodiscard]] const std::vector<RuntimePodPtr>& runtime_pods() const { return runtime_pods_; }
  /// Whether the runtime has given the status of all that is in it.
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  /// Null if no pod of the snapshot has this uid.
  [[nodiscard]] RuntimePodPtr find(std::string_view uid) const;
  /// The same of the pod whose cgroup has this name.
  [[nodiscard]] RuntimePodPtr find(const NamedUid& named) const;

  /// What has become doubtful since the last call, one line each. A doubt that lasts is told once.
  [[nodiscard]] std::vector<Error> take_warnings();

 private:
  struct KnownPod;
  struct Draft;
  using KnownPodPtr = std::shared_ptr<const KnownPod>;

  std::vector<Draft> take_over(std::vector<ListedPod> listed, Snapshot& snapshot) const;
  boost::asio::awaitable<cri::Reply<void>> complete(std::vector<Draft>& drafts);
  [[nodiscard]] KnownPodPtr assemble(Draft& draft) const;
  void warn(std::vector<Error> doubts);

  cri::Client& client_;
  std::int64_t memory_capacity_;
  TrustedNamespaces trusted_;
  std::uint64_t begun_ = 0;      ///< calls of fetch()
  std::uint64_t published_ = 0;  ///< the number of the call that made the snapshot
  std::vector<KnownPodPtr> known_;
  std::unordered_map<std::string_view, KnownPodPtr> by_sandbox_;  // of ids that the pods hold themselves
  bool is_complete_ = true;
  core::PodListPtr pods_ = std::make_shared<core::PodList>();
  std::vector<RuntimePodPtr> runtime_pods_;
  std::unordered_map<std::string_view, RuntimePodPtr> by_uid_;     // of pods that the map holds itself
  std::unordered_map<std::string, RuntimePodPtr> by_escaped_uid_;  // as slices' names have them
  std::set<std::string> known_warnings_;
  std::vector<Error> new_warnings_;
};

/// What the runtime listed, before anybody goes by it.
class CriPods::Snapshot {
 public:
  /// Those that the snapshot that stood when they were listed does not have, or has otherwise.
  [[nodiscard]] const std::vector<RuntimePodPtr>& news() const { return news_; }

 private:
  friend class CriPods;

  std::uint64_t number_ = 0;
  std::vector<KnownPodPtr> pods_{};
  std::vector<RuntimePodPtr> news_{};
};

}  // namespace evictd::pods
