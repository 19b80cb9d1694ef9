#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/held_time.hpp"
#include "cri/client.hpp"
#include "evict/container_stop.hpp"
#include "evict/kill_hooks.hpp"
#include "evict/pod_holds.hpp"
#include "evict/pod_stopper.hpp"
#include "evict/progress.hpp"
#include "node/brake.hpp"
#include "node/cgroup.hpp"
#include "node/pod_cgroups.hpp"
#include "node/signal_reader.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

/// What is done with a pod that would be killed at once because memory is short, where there is somebody whom a little
/// time helps: it is held, so that it takes nothing more from the node, and then killed.
///
/// With the brake the pod itself has the time to end: its preStop hooks run, StopContainer gives it SIGTERM, and it
/// runs on within the brake's headroom. It gets that by quarters, the next one when it stands at the limit: what it
/// takes until SIGTERM reaches it must leave something for its end, for who waits for memory handles no signal. Those
/// that are asked before a kill (kill_hooks.hpp) have theirs beside it; where there is no brake the pod is frozen
/// meanwhile. The time is over at once when the pod has ended, when what is available on the node falls below a part of
/// the threshold (somebody else grows), when the pod does nothing (core/idleness.hpp), or when another eviction of it
/// takes over. A pod that cannot be held soon is given none.
///
/// On the reactor.
class HeldEnd {
 public:
  struct Options {
    core::HeldTime time{};
    std::int64_t headroom = 32 << 20;  ///< bytes
    /// What the victim takes until it is held is taken from the node, so the attempt is over as well once too little is
    /// left. It takes a millisecond, and longer where the processors are busy.
    core::Duration longest_attempt = std::chrono::seconds(1);
  };
  /// All of these must outlive this.
  struct Parts {
    cri::Client& runtime;
    const node::CgroupHierarchy& hierarchy;
    node::PodCgroups& cgroups;
    PodHolder* holder = nullptr;                ///< null: no pod is held
    const node::SignalProbe* memory = nullptr;  ///< null as well, then
    KillHooks* hooks = nullptr;                 ///< null: there is nobody to ask
  };

  HeldEnd(boost::asio::any_io_executor reactor, Parts parts, Options options);

  /// One pod's. Lives as long as run() does.
  struct Subject {
    Subject(pods::RuntimePodPtr pod, Shortage shortage, Report report, bool runs_hooks)
        : pod{std::move(pod)}, shortage{std::move(shortage)}, report{std::move(report)}, runs_hooks{runs_hooks} {}
    Subject(const Subject&) = delete;
    Subject& operator=(const Subject&) = delete;
    virtual ~Subject() = default;

    /// No process is left but the sandbox's.
    [[nodiscard]] virtual bool has_ended() const = 0;
    /// Another eviction took over.
    [[nodiscard]] virtual bool is_given_up() const = 0;

    pods::RuntimePodPtr pod;
    Shortage shortage;
    Report report;
    bool runs_hooks;  ///< its preStop hooks: they have not run before
  };
  struct Outcome {
    std::optional<Error> refused{};      ///< it was not held, and goes as if nothing had been tried
    std::optional<node::Brake> brake{};  ///< what held it; absent: it was frozen, or not held
    bool ended = false;                  ///< by itself
    std::optional<HooksAsked> asked{};   ///< not all have answered, and nobody waits for the others any more
    core::Duration duration{};
    std::string why{};  ///< it is to be killed before its time is over
  };

  /// Whether run() would hold it. No system call.
  [[nodiscard]] bool wants(const pods::RuntimePod& pod, const Shortage& shortage) const;
  /// Holds the pod and returns when it is to be killed, or has ended; it is held still. Reports Braked once it is held,
  /// and HooksAsked when all have answered.
  [[nodiscard]] boost::asio::awaitable<Outcome> run(std::shared_ptr<Subject> subject);
  /// After the kill: lets the pod go, and tells what came of it.
  void finish(const Subject& subject, const Outcome& outcome);
  /// All that are held are to be killed now.
  void hurry() { hurried_ = true; }

 private:
  struct Asking;
  struct Attempt;
  struct Stopping;

  [[nodiscard]] bool has_hooks() const;
  [[nodiscard]] std::optional<std::string> below_floor(const Shortage& shortage) const;
  [[nodiscard]] std::shared_ptr<Asking> ask(const std::shared_ptr<Subject>& subject) const;
  [[nodiscard]] std::shared_ptr<Stopping> stop(const Subject& subject) const;
  boost::asio::awaitable<Result<node::Brake>> hold(const Shortage& shortage, HoldRequest request);
  boost::asio::awaitable<void> until_over(const Subject& subject, const Stopping* stopping, const Asking* asking,
                                          Outcome& outcome);

  boost::asio::any_io_executor reactor_;
  Parts parts_;
  Options options_;
  bool hurried_ = false;
};

}  // namespace evictd::evict
