#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/pod.hpp"
#include "node/cgroup.hpp"
#include "os/directory_changes.hpp"
#include "pods/cgroup_name.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::agent {

/// Which pods need not be looked for in their cgroups.
class ListedPods {
 public:
  ListedPods() = default;
  ListedPods(const ListedPods&) = delete;
  ListedPods& operator=(const ListedPods&) = delete;
  virtual ~ListedPods() = default;

  [[nodiscard]] virtual bool contains(const pods::NamedUid& named) const = 0;
  /// Of one that `contains` does not have: what is in its cgroup may be what an eviction left.
  [[nodiscard]] virtual bool goes(const pods::NamedUid& named) const = 0;
};

/// Pods that have a cgroup with processes in it but are on no list of the runtime's yet: one that was started this
/// moment, or while the runtime hangs. So a brand-new hog does not hide.
///
/// Of such a pod nothing is known but its uid and its cgroup's place, and what the kubelet wrote into the
/// oom_score_adj of its processes: the memory request of a Burstable pod, and that a pod is Guaranteed or critical for
/// the node, which cannot be told apart, so that neither is evicted before it is listed. (kubelet:
/// GetContainerOOMScoreAdjust) A pod that was critical when a list named it stays so for as long as its cgroup is
/// there.
class UnlistedPods {
 public:
  struct Place {
    const node::CgroupHierarchy& hierarchy;  ///< outlives this
    std::string pods_cgroup;
    std::string proc;
    std::int64_t memory_capacity = 0;  ///< bytes, > 0
  };

  explicit UnlistedPods(Place place) : place_{std::move(place)} {}

  /// Looks through the pods' cgroups, two levels deep: at most 1 µs for each of those that are listed, 2 µs where there
  /// are others than before, and 50 µs for one that no list names, however many processes it has. Says whether
  /// something is different from before.
  bool look(const ListedPods& listed);
  /// The same where the list is that of the last look: where all were on it and no cgroup has come or gone since, two
  /// system calls say so, however many pods there are, if inotify tells.
  bool look_again(const ListedPods& listed);
  /// The pods that the runtime lists: those that are critical are remembered.
  void remember(const core::PodList& listed);

  [[nodiscard]] const std::vector<pods::RuntimePodPtr>& pods() const { return pods_; }
  /// Null for others.
  [[nodiscard]] pods::RuntimePodPtr find(std::string_view uid) const;

  // Of the last look.

  /// The pod's cgroup by its name, for a pod of which the runtime does not say where it is. Empty: there is none.
  [[nodiscard]] std::string cgroup_of(std::string_view uid) const;
  /// Cgroups where pods lie that are neither a pod's by their names nor a QoS class's, and have none below them.
  [[nodiscard]] const std::vector<std::string>& strays() const { return strays_; }

 private:
  struct Found {
    std::string cgroup;
    pods::NamedUid named;
  };
  [[nodiscard]] std::vector<std::string> names_in(const std::string& cgroup) const;
  [[nodiscard]] std::uint64_t pods_inode() const;
  [[nodiscard]] bool is_as_seen();
  bool infer_unlisted(const ListedPods& listed);
  [[nodiscard]] std::vector<std::string> below(const std::string& cgroup);
  void find_cgroups();
  [[nodiscard]] pods::RuntimePodPtr infer(const Found& found) const;
  void forget_critical();

  Place place_;
  os::DirectoryChanges changes_;
  bool is_watched_ = false;       // all that was seen is, by `changes_`
  std::uint64_t pods_inode_ = 0;  // of the pods' cgroup then; 0: it is not there
  bool all_listed_ = false;       // at the last look
  std::vector<pods::RuntimePodPtr> pods_;
  std::vector<std::pair<std::string, std::vector<std::string>>> seen_;  // directories, with the names in them
  std::vector<Found> found_;                                            // of pods
  std::map<std::string, std::string, std::less<>> cgroups_;             // of pods, by name
  std::vector<std::string> strays_;
  std::set<std::string, std::less<>> critical_;  // uids
};

/// A listed pod of which neither the runtime nor anybody else could tell what it asks for, with what was inferred of
/// it; any other as it is.
[[nodiscard]] core::PodPtr complete_blank(const core::PodPtr& listed, const core::Pod& inferred);

}  // namespace evictd::agent
