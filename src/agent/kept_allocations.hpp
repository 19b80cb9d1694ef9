#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "admission/pod_allocation.hpp"
#include "agent/admitting_node.hpp"
#include "agent/clock.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::agent {

/// Bytes of what device plugins say of all containers (admission::size_of): far more than any node's plugins do. All of
/// it is written whenever a pod comes or goes, and copied by the reactor for a decision; a file of any size would not
/// be read again (node::largest_allocation_file).
inline constexpr std::size_t most_edits = std::size_t{4} << 20;

/// How long a pod waits until what it was given is written. A disk that works has taken so small a file in
/// milliseconds, and a very busy one within a second or two; whoever starts the pod is better off with an answer than
/// with a wait for one that hangs, and may ask again. A kubelet gives a sandbox 4 minutes.
inline constexpr core::Duration longest_write = std::chrono::seconds{5};

/// What pods have for themselves, saved whenever it changes. On the reactor.
///
/// A pod that starts before what it was given is written may lose that by a SIGKILL: the next evictd would give it to
/// another pod as well. Saves have numbers, since one contains all that came before it.
class KeptAllocations {
 public:
  /// All of these must outlive this.
  struct Parts {
    boost::asio::any_io_executor reactor;
    AdmittingNode& node;
    Clock& clock;
  };

  /// `kept`: what pods were given before a restart, as it is written; `coming`: those of them that were awaited then.
  KeptAllocations(Parts parts, admission::Allocations kept, admission::Coming coming);

  [[nodiscard]] const admission::Allocations& all() const { return all_; }
  [[nodiscard]] const admission::Coming& coming() const { return coming_; }
  /// What the pod has; empty: nothing.
  [[nodiscard]] admission::PodAllocation of(const std::string& uid) const;

  /// The pod has this from now on, in place of what it had; empty: nothing. `until`: it is kept until then also where
  /// no list names the pod; absent: as long as what it had. A later `until` than before is written like what is
  /// new, but not of a pod that a list names: a restart takes nothing from that one.
  void give(const std::string& uid, const admission::PodAllocation& allocation,
            std::optional<core::Instant> until = std::nullopt);
  /// Keeps what plugins said of what the pod has. An error: the pod has gone meanwhile, or it would be more than
  /// `most_edits`.
  [[nodiscard]] Result<void> keep_edits(const std::string& uid, const admission::PodAllocation& allocation);
  /// Whoever is neither of these pods nor awaited still has nothing any more. What was given to a pod by its name alone
  /// is its uid's from now on, unless that has something already: then it is an earlier pod of that name.
  void pods_changed(const core::PodList& pods);

  /// Whether the node would know after a restart what the pod has; also where it has nothing.
  [[nodiscard]] bool is_written(const std::string& uid) const;
  /// Waits until what these pods have now is written; where that has failed already it is tried again. An error: it
  /// failed, or took longer than `longest_write`. Still is_written() may hold for some of them. This may go meanwhile.
  [[nodiscard]] boost::asio::awaitable<Result<void>> written(std::vector<std::string> uids);

 private:
  struct Writes;

  std::uint64_t save();

  Parts parts_;
  admission::Allocations all_;
  admission::Coming coming_;                                    // of pods in all_
  std::set<std::string, std::less<>> listed_;                   // of pods in all_: those that the last list names
  std::map<std::string, std::uint64_t, std::less<>> saved_in_;  // uid -> the save that has what the pod has now
  std::shared_ptr<Writes> writes_;  // callbacks, and those who wait, may come when this is gone
};

}  // namespace evictd::agent
