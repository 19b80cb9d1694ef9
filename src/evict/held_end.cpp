#include "evict/held_end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "async/sleep.hpp"
#include "core/idleness.hpp"
#include "core/printable.hpp"
#include "core/signal.hpp"
#include "evict/paced_look.hpp"
#include "node/processor_time.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::evict {
namespace {

/// Between two looks at the node's memory, which cost microseconds: at a GiB a second 3 MiB are taken in between.
constexpr core::Duration look_pause = 3ms;
constexpr core::Duration idle_pause = 100ms;
/// Longer than a runtime takes to send SIGTERM: 50 to 80 ms.
constexpr core::Duration widen_pause = 200ms;
constexpr std::int64_t quarters = 4;

/// Gives a pod its headroom part by part.
class Widening {
 public:
  Widening(const node::Brake& brake, std::int64_t headroom, core::Instant now)
      : brake_{brake}, part_{headroom / quarters}, last_{now} {}

  /// The limit that is due, where another is. While preStop hooks run half of the headroom is kept back.
  [[nodiscard]] std::optional<std::int64_t> due(core::Instant now, std::int64_t usage, bool hooks_run) {
    constexpr std::int64_t margin = 1 << 20;  // by which the kernel's counters may be off
    const auto most = hooks_run ? quarters / 2 : quarters;
    if (given_ >= most || now - last_ < widen_pause || usage < brake_.usage + part_ * given_ - margin)
      return std::nullopt;
    last_ = now;
    return brake_.usage + part_ * ++given_;
  }

 private:
  node::Brake brake_;
  std::int64_t part_;
  std::int64_t given_ = 1;
  core::Instant last_;
};

/// That the pod is held.
Braked braked(const HeldEnd::Outcome& outcome, core::Duration given) {
  const auto brake = outcome.brake.value_or(node::Brake{});
  return {.limit = brake.limit, .usage = brake.usage, .given = given, .frozen = !outcome.brake};
}

}  // namespace

/// Those that are asked before the kill. It may outlive the wait for them: one that is cancelled ends when it likes.
struct HeldEnd::Asking {
  /// Who has not answered by now has not in time.
  [[nodiscard]] HooksAsked so_far() const {
    HooksAsked asked{*answers};
    for (auto& answer : asked.answers)
      if (answer.took == core::Duration::zero()) answer.took = os::now() - begun;
    return asked;
  }

  asio::cancellation_signal cancel;
  std::shared_ptr<const std::vector<HookAnswer>> answers{};
  core::Instant begun = os::now();
  bool done = false;
  bool over = false;  // nobody waits any more
};

/// The attempt to hold the pod. It may outlive the wait for it, as well.
struct HeldEnd::Attempt {
  explicit Attempt(const asio::any_io_executor& reactor) : timer{reactor} {}

  asio::steady_timer timer;
  std::optional<Result<node::Brake>> held{};
  bool over = false;  // nobody waits any more
};

/// The pod's own end in order, likewise. What a call fails with is told of that which comes after the kill.
struct HeldEnd::Stopping {
  Stopping(const ContainerStop::Parts& parts, pods::RuntimePodPtr pod, ContainerStop::Options options)
      : stop{parts, std::move(pod), options} {}

  ContainerStop stop;
  const Report nobody = [](const Progress&) {};
  asio::cancellation_signal cancel;
  bool done = false;
  bool stopped = false;  // the runtime says that no container runs; its time is longer, so it has killed none
};

HeldEnd::HeldEnd(asio::any_io_executor reactor, Parts parts, Options options)
    : reactor_{std::move(reactor)}, parts_{parts}, options_{options} {}

bool HeldEnd::has_hooks() const { return parts_.hooks != nullptr && parts_.hooks->has_any(); }

bool HeldEnd::wants(const pods::RuntimePod& pod, const Shortage& shortage) const {
  return parts_.holder != nullptr && parts_.memory != nullptr && !hurried_ && !pod.cgroup.empty() &&
         options_.time.is_there(shortage.available, shortage.required, has_hooks());
}

/// In words, where too little is available. What cannot be read does not hold up a kill either.
std::optional<std::string> HeldEnd::below_floor(const Shortage& shortage) const {
  const auto floor = options_.time.floor_of(shortage.required);
  if (const auto at_least = parts_.memory->available_at_least(shortage.signal); at_least && *at_least >= floor)
    return std::nullopt;
  const auto available = parts_.memory->available(shortage.signal);
  if (!available) return fmt::format("{} cannot be read", core::name(shortage.signal));
  if (*available >= floor) return std::nullopt;
  return fmt::format("{} fell to {} MiB", core::name(shortage.signal), *available >> 20);
}

asio::awaitable<HeldEnd::Outcome> HeldEnd::run(std::shared_ptr<Subject> subject) {
  const auto begin = os::now();
  HoldRequest request{.uid = subject->pod->pod->uid,
                      .cgroup = subject->pod->cgroup,
                      .by = options_.time.brakes() ? HoldBy::brake : HoldBy::freeze,
                      .headroom = options_.headroom / quarters};
  Outcome outcome;
  const auto held = co_await hold(subject->shortage, std::move(request));
  if (!held) {
    outcome.refused = held.error();
    co_return outcome;
  }
  if (options_.time.brakes()) {
    outcome.brake = *held;
    // One that is lower is the pod's own.
    if (held->limit > held->usage + options_.headroom / (2 * quarters))
      outcome.brake->limit = held->usage + options_.headroom;
  }
  subject->report(braked(outcome, options_.time.brake));
  const auto stopping = options_.time.brakes() ? stop(*subject) : nullptr;
  const auto asking = options_.time.asks() && has_hooks() ? ask(subject) : nullptr;
  co_await until_over(*subject, stopping.get(), asking.get(), outcome);
  // The kill does not wait for their ends.
  if (stopping != nullptr) {
    stopping->stop.give_up();
    if (!stopping->done) stopping->cancel.emit(asio::cancellation_type::terminal);
  }
  if (asking != nullptr) {
    asking->over = true;
    if (!asking->done) outcome.asked = asking->so_far();
    if (!asking->done) asking->cancel.emit(asio::cancellation_type::terminal);
  }
  outcome.duration = os::now() - begin;
  co_return outcome;
}

asio::awaitable<Result<node::Brake>> HeldEnd::hold(const Shortage& shortage, HoldRequest request) {
  const auto attempt = std::make_shared<Attempt>(reactor_);
  auto ended = [attempt, holder = parts_.holder, uid = request.uid](const std::exception_ptr& thrown,
                                                                    Result<node::Brake> held) {
    if (thrown) held = fail("the attempt to hold it broke off");
    if (attempt->over && held) holder->let_go(uid);
    attempt->held = std::move(held);
    attempt->timer.cancel();
  };
  asio::co_spawn(reactor_, parts_.holder->hold(std::move(request), os::now() + options_.longest_attempt),
                 std::move(ended));
  while (!attempt->held) {
    if (auto too_little = below_floor(shortage)) {
      attempt->over = true;
      co_return fail("until it was held " + *too_little);
    }
    attempt->timer.expires_after(look_pause);
    co_await async::wait(attempt->timer);
  }
  co_return *std::move(attempt->held);
}

/// The runtime kills it when the time that it is told is over: not before those that are asked have had theirs.
std::shared_ptr<HeldEnd::Stopping> HeldEnd::stop(const Subject& subject) const {
  const auto& time = options_.time;
  auto stopping = std::make_shared<Stopping>(
      ContainerStop::Parts{reactor_, parts_.runtime, parts_.hierarchy}, subject.pod,
      ContainerStop::Options{.grace_period = time.asks() && has_hooks() ? std::max(time.brake, time.hooks) : time.brake,
                             .stop_timeout = 1s,
                             .runs_hooks = subject.runs_hooks});
  auto ended = [stopping](std::exception_ptr thrown, ContainerStop::Outcome outcome) {
    stopping->done = true;
    stopping->stopped = !thrown && outcome.any && !outcome.failed && !stopping->stop.is_given_up();
  };
  asio::co_spawn(reactor_, stopping->stop.run(stopping->nobody),
                 asio::bind_cancellation_slot(stopping->cancel.slot(), std::move(ended)));
  return stopping;
}

/// What they answer after their time is for nobody.
std::shared_ptr<HeldEnd::Asking> HeldEnd::ask(const std::shared_ptr<Subject>& subject) const {
  const auto until = os::now() + options_.time.hooks;
  auto asking = std::make_shared<Asking>();
  KillIntent intent{.pod = subject->pod->pod,
                    .cgroup = subject->pod->cgroup,
                    .id = subject->shortage.intent,
                    .message = subject->shortage.message,
                    .until = until};
  asking->answers = intent.answers;
  auto answered = [asking, subject](std::exception_ptr thrown) {
    asking->done = true;
    if (!thrown && !asking->over) subject->report(asking->so_far());
  };
  asio::co_spawn(reactor_, parts_.hooks->ask(std::move(intent)),
                 asio::bind_cancellation_slot(asking->cancel.slot(), std::move(answered)));
  return asking;
}

/// Says in the outcome what it ended by.
asio::awaitable<void> HeldEnd::until_over(const Subject& subject, const Stopping* stopping, const Asking* asking,
                                          Outcome& outcome) {
  const auto& uid = subject.pod->pod->uid;
  const auto held = os::now();
  core::Instant next_look{};
  core::Instant next_idle_look{};
  core::Idleness idleness;
  Widening widening{outcome.brake.value_or(node::Brake{}), options_.headroom, os::now()};
  for (;;) {
    if (subject.is_given_up()) {
      outcome.why = "another eviction of it took over";
      co_return;
    }
    if (auto too_little = below_floor(subject.shortage)) {
      outcome.why = *std::move(too_little);
      co_return;
    }
    const auto time = os::now();
    outcome.ended = stopping != nullptr && stopping->stopped;
    if (!outcome.ended && time >= next_look) {
      outcome.ended = subject.has_ended();
      next_look = earliest_next_look(time, os::now());
    }
    if (outcome.ended) co_return;
    if (hurried_) {
      outcome.why = "evictd ends";
      co_return;
    }
    const bool hooks_run = stopping != nullptr && stopping->stop.runs_hooks();
    if (stopping != nullptr)
      if (const auto limit = widening.due(time, parts_.cgroups.usage(uid).value_or(0), hooks_run))
        parts_.holder->widen(uid, *limit);
    const bool unanswered = asking != nullptr && !asking->done;
    if (options_.time.is_over(held, time, unanswered)) co_return;
    if (options_.time.waits_for_hooks(held, time, unanswered) || stopping == nullptr || hooks_run) {
      idleness.reset();
    } else if (time >= next_idle_look) {
      next_idle_look = time + idle_pause;
      const auto used = node::processor_time(parts_.hierarchy, subject.pod->cgroup);
      const auto usage = parts_.cgroups.usage(uid);
      if (idleness.lasts(time, used ? std::optional{*used} : std::nullopt, usage.value_or(0))) {
        outcome.why = core::Idleness::why();
        co_return;
      }
    }
    co_await async::sleep(look_pause);
  }
}

void HeldEnd::finish(const Subject& subject, const Outcome& outcome) {
  const auto& pod = *subject.pod->pod;
  if (outcome.refused)
    return os::log_warning("{} could not be held, and was killed at once: {}", pod.key(),
                           core::printable(outcome.refused->message));
  parts_.holder->let_go(pod.uid);
  if (outcome.asked) subject.report(*outcome.asked);
  auto over = braked(outcome, options_.time.brake);
  over.phase = outcome.ended ? Braked::Phase::ended : Braked::Phase::killed;
  over.duration = outcome.duration;
  over.why = outcome.why;
  subject.report(over);
}

}  // namespace evictd::evict
