#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "core/in_flight.hpp"
#include "evict/eviction_record.hpp"
#include "pods/cgroup_name.hpp"
#include "pods/runtime_pod.hpp"
#include "state/state_writer.hpp"

namespace evictd::state::v1 {
class AgentState;
}

namespace evictd::agent {

/// The evictions that are under way, and for some minutes those that are over. Evictions fills it; whoever has to know
/// which pods go, or went, asks it. It survives a restart. On the reactor.
class EvictionRecords {
 public:
  /// A pod whose cleanup is over: the cluster may still have to learn of it, and what is left in its cgroup is no
  /// unlisted pod.
  struct Evicted {
    evict::EvictionRecord record;
    core::Instant until;                   ///< for how long it is remembered
    std::optional<core::Instant> ended{};  ///< absent: its disk space is still awaited
    bool returned = false;                 ///< it was started again since
  };

  EvictionRecords() = default;
  EvictionRecords(const EvictionRecords&) = delete;
  EvictionRecords& operator=(const EvictionRecords&) = delete;

  // What becomes of an eviction.

  /// It takes the place of an earlier eviction of the same pod that is under way.
  void begin(evict::EvictionRecord record);
  /// The eviction of this pod by that id; null where a quicker one took over, or none is under way.
  [[nodiscard]] evict::EvictionRecord* find(std::string_view uid, std::uint64_t id);
  /// The eviction is no longer under way, and is not remembered: a dry run's.
  void forget(std::string_view uid);
  /// The cleanup is over: the record is remembered for five minutes, long enough that an API server which was away is
  /// told of it by the next evictd as well. The eviction is under way.
  [[nodiscard]] evict::EvictionRecord end(std::string_view uid, core::Instant now);
  /// What the pod held on a disk is back, too, or is not waited for any more; its cgroup may still be there.
  void settled(const evict::EvictionRecord& record, core::Instant now);
  /// A pod whose eviction has ended runs again.
  void returned(std::string_view uid);

  // What there is.

  /// Whether the pod is on its way out.
  [[nodiscard]] bool contains(std::string_view uid) const { return under_way_.contains(uid); }
  /// The same, or it was a short while ago.
  [[nodiscard]] bool remembers(std::string_view uid) const { return contains(uid) || evicted_.contains(uid); }
  /// Whether the pod went a short while ago and does not run again as far as is known; also while nothing but its
  /// cgroup and its emptyDirs is awaited. One of which nothing was killed until waiting for its end took too long did
  /// not go.
  [[nodiscard]] bool has_ended(std::string_view uid) const;
  /// Whether what is in the pod's cgroup may be what an eviction left: the pod is on its way out, or the wait for its
  /// end took too long a short while ago.
  [[nodiscard]] bool knows(const pods::NamedUid& named) const;
  /// Whether no later eviction of the same pod is under way, or over and still remembered.
  [[nodiscard]] bool is_latest(const evict::EvictionRecord& record) const;
  /// By pod uid.
  [[nodiscard]] const std::map<std::string, evict::EvictionRecord, std::less<>>& under_way() const {
    return under_way_;
  }
  /// By pod uid.
  [[nodiscard]] const std::map<std::string, Evicted, std::less<>>& evicted() const { return evicted_; }
  /// The pods that went, are not known to have returned, and whose cleanup ended before `time`: a list of pods that was
  /// asked for then shows whether they run again. By uid. What is remembered no longer is forgotten.
  [[nodiscard]] std::vector<std::string> ended_before(core::Instant time, core::Instant now);

  // A restart.

  /// Takes over what an earlier evictd had begun, and what it remembered. An eviction whose grace period and
  /// `cleanup_timeout` are over, twice that of a pod that was killed, is left alone: it is taken out of `in_flight`,
  /// which is the state machine's, and returned. One whose pod is gone never is. What was decided and not begun is
  /// taken out as well.
  [[nodiscard]] std::vector<evict::EvictionRecord> restore(const state::v1::AgentState& kept,
                                                           std::vector<core::InFlight::Entry>& in_flight,
                                                           core::Duration cleanup_timeout, core::Instant now);
  /// What restore() needs; the records hold until the reactor goes on.
  [[nodiscard]] std::vector<state::SavedEviction> to_save() const;

 private:
  std::map<std::string, evict::EvictionRecord, std::less<>> under_way_;  // by pod uid
  std::map<std::string, Evicted, std::less<>> evicted_;                  // the same
};

/// Whether an evicted pod runs again by what the runtime lists: a container of it runs that was not killed. A runtime
/// starts no container a second time, so one that was killed and is listed as running is dead, and the list lags
/// behind. A pod of which nothing was killed runs as it is listed, and so does one whose containers' ids a restart did
/// not keep.
[[nodiscard]] bool runs_again(const evict::EvictionRecord& record, const pods::RuntimePod& listed);

}  // namespace evictd::agent
