#pragma once
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/duration.hpp"
#include "core/pod.hpp"
#include "core/shutdown_plan.hpp"

namespace evictd::core {

/// How far a shutdown of the node has come: what an evictd that restarts in the middle has to know. Times are of the
/// monotonic clock, so it means something in the boot it was made in and in no other.
struct ShutdownProgress {
  Instant begun{};
  std::optional<std::int32_t> group{};                 ///< the priority of the group under way; absent: none yet
  Instant group_until{};                               ///< when the next one begins at the latest
  std::map<std::string, Instant, std::less<>> told{};  ///< pods that were told to end, by uid, and their time's end
  std::set<std::string, std::less<>> ended{};          ///< those of them that did
  bool over = false;                                   ///< all groups are over: nothing holds the shutdown up

  friend bool operator==(const ShutdownProgress&, const ShutdownProgress&) = default;
};

// What becomes known.

/// What logind announced: PrepareForShutdown, or on a new connection the property PreparingForShutdown.
struct ShutdownPending {
  bool pending = false;
};
/// Answers ListPods.
struct PodsListed {
  PodListPtr pods;
};
/// Nothing of the pod is left on the node, or its end is not awaited any more.
struct PodEnded {
  std::string uid;
};
/// The time of WakeMeAt has come. (It may come too early, or without having been asked for.)
struct TimePassed {};

using ShutdownEvent = std::variant<ShutdownPending, PodsListed, PodEnded, TimePassed>;

// What is to be done, in the order given.

/// Answered by PodsListed, as soon as the pods of the node are known.
struct ListPods {
  friend bool operator==(const ListPods&, const ListPods&) = default;
};
/// Answered by PodEnded.
struct EndPod {
  PodPtr pod;
  Duration grace_period{};

  friend bool operator==(const EndPod&, const EndPod&) = default;
};
/// Replaces what was asked before; absent: no need.
struct WakeMeAt {
  std::optional<Instant> time{};

  friend bool operator==(const WakeMeAt&, const WakeMeAt&) = default;
};
/// Have the next shutdown wait for us; a lock that is held already is exchanged for a new one.
struct TakeLock {
  friend bool operator==(const TakeLock&, const TakeLock&) = default;
};
/// The shutdown need not wait any longer.
struct ReleaseLock {
  friend bool operator==(const ReleaseLock&, const ReleaseLock&) = default;
};
/// Absent: there is nothing that a restart would have to know. It comes before whatever it tells of is done.
struct KeepProgress {
  std::optional<ShutdownProgress> progress{};

  friend bool operator==(const KeepProgress&, const KeepProgress&) = default;
};
enum class ShutdownPhase : std::uint8_t { Begun, Resumed, Cancelled, Ended };
struct TellShutdown {
  ShutdownPhase phase = ShutdownPhase::Begun;
  PodList left{};      ///< with Ended: who was still there when the time was over
  bool listed = true;  ///< with Ended: false where the time was over before anybody could say which pods there are
  Instant begun{};     ///< the shutdown's first word: the same after a restart, and another for another shutdown

  friend bool operator==(const TellShutdown&, const TellShutdown&) = default;
};

using ShutdownAction = std::variant<ListPods, EndPod, WakeMeAt, TakeLock, ReleaseLock, KeepProgress, TellShutdown>;
using ShutdownActions = std::vector<ShutdownAction>;

/// Ends the node's pods group by group while logind holds the shutdown up (kubelet: nodeshutdown.managerImpl,
/// podManager.killPods). Pure: its driver performs the actions, and returns their results as events.
///
/// The groups go by rising priority. The pods of one group are asked to end together; the next one begins when all of
/// them have, or when the group's time is over. No pod is given more than is left, in whole seconds rounded up, of what
/// all groups together may take since the shutdown began. Groups without any time have their pods killed, for which the
/// list of the pods is awaited for 1 s. When the last group is over the lock is released. A shutdown
/// that is called off stops where it is: pods that were asked to end still end, the others stay, and the node takes
/// pods again (a kubelet notices only when it is done).
///
/// Where it begins with the progress of an earlier evictd, the node takes no pods until logind answers whether the
/// shutdown is still on. If it is, pods that were asked to end are asked again with what is left of their time, those
/// that have ended are left alone, and groups that were over stay so.
class ShutdownMachine {
 public:
  /// `groups`: not empty.
  explicit ShutdownMachine(ShutdownGroups groups, std::optional<ShutdownProgress> earlier = {});

  /// Once, before the first step.
  [[nodiscard]] ShutdownActions start(Instant now);
  [[nodiscard]] ShutdownActions step(const ShutdownEvent& event, Instant now);

  /// From the first word of a shutdown until it is called off: the node takes no pods.
  [[nodiscard]] bool shutting_down() const { return state_ != State::Open; }
  /// ListPods is not answered yet, and still worth an answer.
  [[nodiscard]] bool waits_for_pods() const { return state_ == State::Listing; }
  /// All groups are over.
  [[nodiscard]] bool over() const { return state_ == State::Over; }

 private:
  enum class State : std::uint8_t {
    Open,
    Unconfirmed,  ///< an earlier evictd was shutting down; logind has not answered yet whether it still is
    Listing,
    Ending,
    Over,
  };

  void on(const ShutdownPending& event);
  void on(const PodsListed& event);
  void on(const PodEnded& event);
  void on(const TimePassed& event);
  void begin();
  void resume();
  void call_off();
  void tell_again(const PodList& pods);
  void begin_stage();
  void end_stages();
  void finish(bool listed = true);
  void keep();
  [[nodiscard]] bool stage_is_over() const;
  [[nodiscard]] Instant last_moment() const;
  [[nodiscard]] Instant listing_ends() const;

  ShutdownGroups groups_;
  State state_ = State::Open;
  ShutdownProgress progress_;
  std::vector<ShutdownStage> stages_;                // those that are not over, in their order; of Ending
  std::map<std::string, PodPtr, std::less<>> pods_;  // that were told to end, by uid
  std::optional<Instant> forget_at_;                 // of Unconfirmed
  Instant now_{};                                    // of the present step
  ShutdownActions actions_;                          // of the present step
};

/// One line, for failing tests and debug logs.
std::ostream& operator<<(std::ostream& out, const ShutdownAction& action);
std::ostream& operator<<(std::ostream& out, const ShutdownActions& actions);

}  // namespace evictd::core
