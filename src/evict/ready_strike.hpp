#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "evict/protection.hpp"
#include "node/cgroup.hpp"
#include "node/pod_cgroups.hpp"
#include "os/kept_file.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

/// What a strike at one container needs, opened before it. Nothing of it is believed: the processes are listed anew,
/// and whoever is signalled is held by a pidfd that is opened then.
class ReadyContainer {
 public:
  /// The container's own processes now, by a file that no one has read: each call uses one up, and there are two.
  /// Nothing where there is none left, or it does not lead to processes any more: then the cgroup is opened by its
  /// path.
  [[nodiscard]] std::optional<std::vector<pid_t>> list();
  /// Whether any of its processes was: where there are very many none is.
  [[nodiscard]] bool was_looked_at() const { return !unprotected_.empty(); }
  /// Whether a process that had this pid was found not to be protected.
  [[nodiscard]] bool knows(pid_t pid) const;
  /// Whether it still has it, and no name that may be protected. To be asked after the pidfd was opened.
  [[nodiscard]] bool is_unprotected(pid_t pid) const;

 private:
  friend class ReadyStrike;

  std::vector<os::KeptFile> unread_;
  std::vector<Unprotected> unprotected_;
};

/// Makes strikes ready. On the reactor.
class StrikePreparation {
 public:
  StrikePreparation() = default;
  StrikePreparation(const StrikePreparation&) = delete;
  StrikePreparation& operator=(const StrikePreparation&) = delete;
  virtual ~StrikePreparation() = default;

  /// From now on these pods may be struck soon, the likeliest first. Others are forgotten.
  virtual void prepare(std::span<const pods::RuntimePodPtr> pods, core::Instant now) = 0;
  /// Does what a strike at the pod does but for the signal, and makes it ready again: so the kernel and the processor
  /// have at hand what it takes.
  virtual void rehearse(const pods::RuntimePod& pod) = 0;
};

/// Keeps open what the first strikes at the likeliest pods need, so that between the decision and the signal nothing is
/// looked up: of each pod the largest container, then further ones of the first pods.
///
/// On v1 the kernel gives a cgroup.procs that is read twice within a second the same list twice. So two are kept for
/// each container and neither is read before the strike; the processes that are known beforehand are listed by a third.
///
/// What is kept serves for `lasts` and is opened anew by the next prepare() then. A container that ended, or a cgroup
/// that was made again by the same name, costs one failed read more. Where descriptors run short all of it is closed.
class ReadyStrike final : public StrikePreparation {
 public:
  static constexpr std::size_t most_pods = 8;
  static constexpr std::size_t most_containers = 12;
  static constexpr std::size_t most_processes = 4;  ///< of each container that are looked at beforehand
  /// Of a container with more tasks none is: on v1 the kernel sorts the whole list first (1.3 µs each).
  static constexpr std::int64_t most_tasks = 512;
  /// In all, and no more than a sixteenth of the descriptors that evictd may have.
  static constexpr std::size_t most_descriptors = most_pods + most_containers * (2 + most_processes);
  static constexpr core::Duration lasts = std::chrono::seconds(10);

  /// `hierarchy` and `cgroups` outlive this.
  struct Parts {
    const node::CgroupHierarchy& hierarchy;
    const node::PodCgroups& cgroups;
    IsProtected is_protected;
    std::string proc = "/proc";
  };

  explicit ReadyStrike(Parts parts);

  /// 10 to 60 µs for each container that is opened anew.
  void prepare(std::span<const pods::RuntimePodPtr> pods, core::Instant now) override;
  /// At its largest container, if that is ready. Nothing in it can send a signal.
  void rehearse(const pods::RuntimePod& pod) override;
  /// For one strike at the container of this cgroup. Nothing where it is not ready.
  [[nodiscard]] std::optional<ReadyContainer> take(std::string_view cgroup);
  /// Bytes that the cgroup of a sandbox holds now. Nothing where it is not open, or gone.
  [[nodiscard]] std::optional<std::int64_t> usage(std::string_view cgroup) const;
  /// Gives all descriptors back.
  void release();
  [[nodiscard]] std::size_t descriptors() const;

 private:
  struct Kept {
    ReadyContainer container;
    core::Instant opened;
  };

  [[nodiscard]] std::vector<std::string> containers_of(std::span<const pods::RuntimePodPtr> pods) const;
  [[nodiscard]] os::FileResult<ReadyContainer> open(std::string_view cgroup) const;
  [[nodiscard]] bool keep(const std::vector<std::string>& containers, core::Instant now);
  [[nodiscard]] bool keep_sandboxes(const std::vector<std::string>& sandboxes);
  [[nodiscard]] bool has_room_for(std::size_t more) const;

  const Parts parts_;
  std::map<std::string, Kept, std::less<>> containers_;         // by cgroup
  std::map<std::string, os::KeptFile, std::less<>> sandboxes_;  // the same: their usage
};

}  // namespace evictd::evict
