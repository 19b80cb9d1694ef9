#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "cri/client.hpp"
#include "evict/held_end.hpp"
#include "evict/kill.hpp"
#include "evict/kill_hooks.hpp"
#include "evict/pod_cgroup_end.hpp"
#include "evict/pod_holds.hpp"
#include "evict/pod_stopper.hpp"
#include "evict/pod_volumes_end.hpp"
#include "evict/progress.hpp"
#include "evict/protection.hpp"
#include "evict/ready_strike.hpp"
#include "evict/runtime_look.hpp"
#include "node/cgroup.hpp"
#include "node/kubelet_lookout.hpp"
#include "node/pod_cgroups.hpp"
#include "node/signal_reader.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

struct EvictorOptions {
  bool direct_kill = true;  ///< a pod without a grace period is killed before the runtime is told (kill.mode: fast)
  /// Of a pod that was killed over the runtime, which only keeps its books by then: its work, and that of its shims,
  /// would take processor time from the ends that give the memory back.
  core::Duration head_start = std::chrono::milliseconds(30);
  core::Duration stop_timeout = std::chrono::seconds(2);      ///< how long a CRI stop may take beyond the grace period
  core::Duration cleanup_timeout = std::chrono::seconds(30);  ///< how long to wait for the pod to be gone
  RemoveVolumes remove_volumes = RemoveVolumes::never;
  HeldEnd::Options held_end{};  ///< what a pod is given that goes at once for want of memory
};

/// Carries out the decision that a pod must go, and watches until it is gone. Never blocks the reactor.
class Evictor final : public PodStopper {
 public:
  /// All of these must outlive this, and this its evictions.
  struct Parts {
    cri::Client& runtime;
    const node::CgroupHierarchy& hierarchy;
    std::string pods_cgroup;  ///< outside of it only the runtime kills
    node::PodCgroups& cgroups;
    Reaper& reaper;
    std::filesystem::path kubelet_root;  ///< where pods' volumes lie (node.kubeletRoot)
    IsProtected is_protected;
    node::KubeletLookout& kubelet;
    ReadyStrike* ready = nullptr;               ///< null: no strike is made ready
    PodHolder* holder = nullptr;                ///< null: no pod is held
    const node::SignalProbe* memory = nullptr;  ///< null as well, then
    KillHooks* hooks = nullptr;                 ///< null: there is nobody to ask before a kill
  };

  Evictor(boost::asio::any_io_executor reactor, Parts parts, EvictorOptions options);

  /// Begins an eviction. Without a grace period, and where the pod's cgroups are known, the containers' processes are
  /// killed before this returns (`direct_kill`; more than Killer::most_in_a_turn in a thread, right after), and the
  /// runtime is asked to stop them `head_start` later, for its bookkeeping; otherwise the runtime stops them, in the
  /// time that the pod is given (evict/container_stop.hpp), then its sandbox by StopPodSandbox. Where StopContainer
  /// fails or passes its deadline, SIGKILL to the containers' processes; while the runtime does not answer, as when it
  /// restarts, not before the grace period is over. With any grace period the containers have 2 s at least, as a
  /// kubelet 1.36 gives them; what was started again meanwhile gets SIGKILL. The sandbox's own process is the runtime's
  /// to end: it is killed only where StopPodSandbox has not been carried out within `stop_timeout` of the direct kill,
  /// or of the containers' end where there was none. Then the runtime is asked for it once more after CleanupEnded,
  /// within `cleanup_timeout`. Of a pod that is given time and comes without containers the runtime is asked first
  /// which it has, again and again while it does not answer; once the time is over they get SIGKILL. Where no container
  /// is known the pod is not reported killed before its cgroup was seen empty, or all in it was signalled.
  ///
  /// A pod that is gone may have left its own cgroup (pod_cgroup_end.hpp) and its emptyDirs (pod_volumes_end.hpp),
  /// whose end CleanupEnded awaits, within `cleanup_timeout`. Where it is a disk that is short, PodGone awaits that of
  /// the emptyDirs as well. Where the time is over before the pod is gone, though none of its processes is left, its
  /// cgroup is seen to after CleanupEnded, for as long again.
  ///
  /// `report` is called for every step as it happens, also before this returns; CleanupEnded comes last, once.
  /// Where another eviction of the pod is under way this one takes over from it: hooks that run are broken off, and
  /// none runs again; nor does one of an eviction that was resumed. What the pod leaves is kept or removed by
  /// this one alone, which reports its end.
  ///
  /// `reached`: what was reported already is not reported again; what came back since is killed, unless the pod was
  /// reported gone.
  ///
  /// `shortage`: the pod may be held before it is killed (held_end.hpp), then this returns at once. One whose eviction
  /// was resumed is not.
  void begin(pods::RuntimePodPtr pod, core::Duration grace_period, Afterwards afterwards, Report report,
             const std::optional<Reached>& reached = {}, const std::optional<Shortage>& shortage = {}) override;
  void hurry() override { held_end_.hurry(); }

 private:
  struct Eviction;
  struct HeldSubject;

  bool takes_over(const std::shared_ptr<Eviction>& eviction);
  void make_stop(Eviction& eviction, core::Duration grace_period) const;
  void kill_at_once(Eviction& eviction);
  boost::asio::awaitable<void> hold_and_run(std::shared_ptr<Eviction> eviction, Shortage shortage, bool runs_hooks);
  boost::asio::awaitable<void> run(std::shared_ptr<Eviction> eviction);
  boost::asio::awaitable<void> stop(Eviction& eviction);
  boost::asio::awaitable<void> stop_containers(Eviction& eviction);
  boost::asio::awaitable<bool> find_containers(Eviction& eviction);
  boost::asio::awaitable<void> stop_sandboxes(Eviction& eviction);
  boost::asio::awaitable<Result<void>> find_sandboxes(Eviction& eviction, core::Instant until);
  boost::asio::awaitable<cri::Reply<void>> stop_sandbox(std::string id, core::Instant until);
  boost::asio::awaitable<void> tear_down(const Eviction& eviction);
  boost::asio::awaitable<void> remove_sandboxes(Eviction& eviction);
  boost::asio::awaitable<Kill> kill_directly(Eviction& eviction);
  boost::asio::awaitable<void> kill_all(Eviction& eviction);
  boost::asio::awaitable<void> keep_killing(Eviction& eviction);
  boost::asio::awaitable<void> watch_memory(Eviction& eviction);
  boost::asio::awaitable<void> wait_for_cleanup(Eviction& eviction);
  boost::asio::awaitable<std::string> see_it_gone(Eviction& eviction, core::Instant give_up);
  boost::asio::awaitable<std::string> say_it_is_gone(Eviction& eviction, core::Instant give_up);
  boost::asio::awaitable<std::string> wait_for_volumes(Eviction& eviction, core::Instant give_up);
  boost::asio::awaitable<std::string> wait_until_gone(Eviction& eviction, core::Instant give_up);
  boost::asio::awaitable<std::string> left_in_the_runtime(Eviction& eviction);
  [[nodiscard]] std::vector<Target> targets(Eviction& eviction) const;
  [[nodiscard]] os::FileResult<bool> look_at_containers(const Eviction& eviction) const;
  [[nodiscard]] bool containers_are_empty(const Eviction& eviction, bool without_cgroup) const;
  static void report_error(Eviction& eviction, const Kill& kill);
  static void report_killed(Eviction& eviction, std::string_view method, core::Instant time);

  boost::asio::any_io_executor reactor_;
  Parts parts_;
  EvictorOptions options_;
  Killer killer_;
  RuntimeLook look_;
  PodCgroupEnd cgroup_end_;
  PodVolumesEnd volumes_end_;
  HeldEnd held_end_;
  std::map<std::string, std::weak_ptr<Eviction>, std::less<>> under_way_;  // the latest of each uid
};

}  // namespace evictd::evict
