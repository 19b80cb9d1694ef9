#include "core/shutdown_machine.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ostream>
#include <string_view>
#include <utility>

#include "core/duration.hpp"
#include "core/pod.hpp"

namespace evictd::core {
namespace {

using namespace std::chrono_literals;

/// How long a list of the pods is awaited where the groups have no time at all: their pods are to be killed all the
/// same.
constexpr Duration least_listing_time = 1s;

/// For how long what an earlier evictd left is believed without a word from logind: a shutdown that goes on does not
/// leave us this long.
constexpr Duration confirmation_patience = 1min;

}  // namespace

ShutdownMachine::ShutdownMachine(ShutdownGroups groups, std::optional<ShutdownProgress> earlier)
    : groups_{std::move(groups)} {
  if (!earlier) return;
  progress_ = *std::move(earlier);
  state_ = State::Unconfirmed;
}

ShutdownActions ShutdownMachine::start(Instant now) {
  if (state_ != State::Unconfirmed) return {};
  forget_at_ = now + confirmation_patience;
  return {WakeMeAt{forget_at_}};
}

ShutdownActions ShutdownMachine::step(const ShutdownEvent& event, Instant now) {
  now_ = now;
  actions_.clear();
  std::visit([this](const auto& known) { on(known); }, event);
  return std::exchange(actions_, {});
}

void ShutdownMachine::on(const ShutdownPending& event) {
  if (!event.pending) return state_ == State::Open ? actions_.push_back(TakeLock{}) : call_off();
  if (state_ == State::Open) return begin();
  if (state_ == State::Unconfirmed) return resume();
}

void ShutdownMachine::begin() {
  state_ = State::Listing;
  progress_ = {.begun = now_};
  keep();
  actions_.push_back(TellShutdown{.phase = ShutdownPhase::Begun, .begun = progress_.begun});
  actions_.push_back(WakeMeAt{listing_ends()});
  actions_.push_back(ListPods{});
}

void ShutdownMachine::resume() {
  forget_at_.reset();
  actions_.push_back(TellShutdown{.phase = ShutdownPhase::Resumed, .begun = progress_.begun});
  if (progress_.over) {
    state_ = State::Over;
    actions_.push_back(WakeMeAt{});
    actions_.push_back(ReleaseLock{});
    return;
  }
  state_ = State::Listing;
  actions_.push_back(WakeMeAt{std::max(now_, listing_ends())});
  actions_.push_back(ListPods{});
}

void ShutdownMachine::call_off() {
  const auto begun = progress_.begun;
  state_ = State::Open;
  progress_ = {};
  stages_.clear();
  pods_.clear();
  forget_at_.reset();
  actions_.push_back(KeepProgress{});
  actions_.push_back(TellShutdown{.phase = ShutdownPhase::Cancelled, .begun = begun});
  actions_.push_back(WakeMeAt{});
  actions_.push_back(TakeLock{});
}

void ShutdownMachine::on(const PodsListed& event) {
  if (state_ != State::Listing) return;
  state_ = State::Ending;
  stages_ = plan_shutdown(groups_, *event.pods);
  if (!progress_.group) {
    if (!stages_.empty()) begin_stage();
    return end_stages();
  }
  std::erase_if(stages_, [&](const ShutdownStage& stage) { return groups_[stage.group].priority < *progress_.group; });
  tell_again(*event.pods);
  // Where no pod is left of the group that was under way, the next one begins.
  if (!stages_.empty() && groups_[stages_.front().group].priority != *progress_.group) begin_stage();
  end_stages();
}

/// Those whose time had begun; what is no longer there has ended.
void ShutdownMachine::tell_again(const PodList& pods) {
  std::vector<EndPod> ends;
  std::set<std::string, std::less<>> listed;
  for (const auto& pod : pods) {
    listed.insert(pod->uid);
    const auto told = progress_.told.find(pod->uid);
    const bool in_group = !stages_.empty() && groups_[stages_.front().group].priority == *progress_.group &&
                          std::ranges::find(stages_.front().pods, pod) != stages_.front().pods.end();
    if (progress_.ended.contains(pod->uid) || (told == progress_.told.end() && !in_group)) continue;
    if (told == progress_.told.end()) {
      const auto grace = shutdown_grace_period(groups_[stages_.front().group], *pod);
      progress_.told[pod->uid] = std::min(now_ + grace, std::max(now_, progress_.group_until));
    }
    pods_[pod->uid] = pod;
    ends.push_back({pod, std::max(Duration::zero(), progress_.told[pod->uid] - now_)});
  }
  for (const auto& [uid, until] : progress_.told)
    if (!listed.contains(uid)) progress_.ended.insert(uid);
  keep();
  for (auto& end : ends) actions_.push_back(std::move(end));
  actions_.push_back(WakeMeAt{std::max(now_, progress_.group_until)});
}

/// The first of the stages that are left.
void ShutdownMachine::begin_stage() {
  const auto& stage = stages_.front();
  const auto& group = groups_[stage.group];
  // In whole seconds, so that no pod loses the time that listing took.
  const auto left = std::chrono::ceil<std::chrono::seconds>(std::max(Duration::zero(), last_moment() - now_));
  const auto period = std::min<Duration>(group.grace_period, left);
  progress_.group = group.priority;
  progress_.group_until = now_ + period;
  std::vector<EndPod> ends;
  for (const auto& pod : stage.pods) {
    if (progress_.told.contains(pod->uid)) continue;  // by an earlier evictd
    const auto grace = std::min(period, shutdown_grace_period(group, *pod));
    progress_.told[pod->uid] = now_ + grace;
    pods_[pod->uid] = pod;
    ends.push_back({pod, grace});
  }
  keep();
  for (auto& end : ends) actions_.push_back(std::move(end));
  actions_.push_back(WakeMeAt{progress_.group_until});
}

bool ShutdownMachine::stage_is_over() const {
  if (now_ >= progress_.group_until) return true;
  return std::ranges::all_of(stages_.front().pods,
                             [&](const PodPtr& pod) { return progress_.ended.contains(pod->uid); });
}

void ShutdownMachine::end_stages() {
  while (!stages_.empty()) {
    if (!stage_is_over()) return;
    stages_.erase(stages_.begin());
    if (!stages_.empty()) begin_stage();
  }
  finish();
}

void ShutdownMachine::finish(bool listed) {
  state_ = State::Over;
  progress_.over = true;
  keep();
  TellShutdown ended{.phase = ShutdownPhase::Ended, .listed = listed, .begun = progress_.begun};
  for (const auto& [uid, pod] : pods_)
    if (!progress_.ended.contains(uid)) ended.left.push_back(pod);
  actions_.push_back(std::move(ended));
  actions_.push_back(WakeMeAt{});
  actions_.push_back(ReleaseLock{});
}

void ShutdownMachine::on(const PodEnded& event) {
  const bool awaited = state_ == State::Ending || state_ == State::Over;
  if (!awaited || !progress_.told.contains(event.uid) || !progress_.ended.insert(event.uid).second) return;
  keep();
  if (state_ == State::Ending) end_stages();
}

void ShutdownMachine::on(const TimePassed&) {
  if (state_ == State::Unconfirmed && forget_at_ && now_ >= *forget_at_) return call_off();
  if (state_ == State::Listing && now_ >= listing_ends()) return finish(false);
  if (state_ == State::Ending) end_stages();
}

void ShutdownMachine::keep() { actions_.push_back(KeepProgress{progress_}); }

Instant ShutdownMachine::last_moment() const { return progress_.begun + total_grace_period(groups_); }

Instant ShutdownMachine::listing_ends() const { return std::max(last_moment(), progress_.begun + least_listing_time); }

namespace {

struct ShutdownPrinter {
  std::ostream& out;

  void operator()(const ListPods&) const { out << "list pods"; }
  void operator()(const EndPod& action) const {
    out << "end " << action.pod->name << " in " << to_string(action.grace_period);
  }
  void operator()(const WakeMeAt& action) const {
    out << "wake at " << (action.time ? to_string(action.time->time_since_epoch()) : "no time");
  }
  void operator()(const TakeLock&) const { out << "take lock"; }
  void operator()(const ReleaseLock&) const { out << "release lock"; }
  void operator()(const KeepProgress& action) const {
    if (!action.progress) {
      out << "forget";
      return;
    }
    out << "keep " << action.progress->told.size() << " told, " << action.progress->ended.size() << " ended"
        << (action.progress->over ? ", over" : "");
  }
  void operator()(const TellShutdown& action) const {
    static constexpr std::array<std::string_view, 4> names{"begun", "resumed", "cancelled", "ended"};
    out << "tell " << names[static_cast<std::size_t>(action.phase)];
    for (const auto& pod : action.left) out << " left:" << pod->name;
    if (!action.listed) out << " unlisted";
  }
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const ShutdownAction& action) {
  std::visit(ShutdownPrinter{out}, action);
  return out;
}

std::ostream& operator<<(std::ostream& out, const ShutdownActions& actions) {
  out << "[";
  for (auto separator = ""; const auto& action : actions) {
    out << separator << action;
    separator = "; ";
  }
  return out << "]";
}

}  // namespace evictd::core
