#include "wake/self_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "core/signal.hpp"
#include "node/cgroup.hpp"
#include "os/now.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::wake {
namespace {

/// The start has enough to do; and who looks at a status soon after it wants to know.
constexpr core::Duration first_test = 10s;
/// A child that has not taken its memory by then has no processor, or is held by memory.high.
constexpr core::Duration longest_crossing = 10s;
/// A child that was killed ends at once, but for what the kernel is doing with it. Until then, after a silence, it is
/// looked for so often and so long.
constexpr core::Duration between_looks_for_its_end = 100ms;
constexpr core::Duration longest_end = 10s;

using os::now;

}  // namespace

SelfTest::SelfTest(asio::any_io_executor reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy, Options options,
                   const std::vector<std::unique_ptr<Source>>& sources)
    : timer_{reactor},
      notifier_{wakes, core::WakeSource::SelfTest},
      options_{std::move(options)},
      sources_{sources},
      probe_{reactor, hierarchy, options_.path, *this} {
  keep_open();  // before anybody watches what comes and goes there
  after(std::min(first_test, options_.interval), &SelfTest::begin);
}

SelfTest::~SelfTest() = default;

void SelfTest::arm(const Arming& arming) {
  short_of_memory_ = std::ranges::any_of(arming.levels, [](const Level& level) {
    return core::is_memory(level.signal) && level.available < level.threshold;
  });
  keep_open();
}

/// Whether the kernel has something to signal, and a listener for it.
bool SelfTest::keep_open() {
  if (probe_.is_open()) return true;
  const auto opened = probe_.open();
  if (!opened) {
    // The node's cgroup will come, or the v2 hierarchy hands no memory controller down to it.
    if (opened.error().is_gone())
      notifier_.works();
    else
      notifier_.failed(opened.error());
    state_ = "waiting: " + opened.error().message;
    return false;
  }
  notifier_.works();
  if (std::exchange(was_registered_, true)) notifier_.re_registered(cgroup_made_anew);
  state_ = "armed";
  return true;
}

void SelfTest::after(core::Duration time, void (SelfTest::*what)()) {
  timer_.expires_after(time);
  timer_.async_wait([this, what](boost::system::error_code error) {
    if (!error) (this->*what)();  // otherwise cancelled: `this` may be gone
  });
}

void SelfTest::begin() {
  const bool child_runs = probe_.child() == ProbeCgroup::Child::Runs;
  if (child_runs && silent_since_ && now() - *silent_since_ < longest_end)
    return after(between_looks_for_its_end, &SelfTest::begin);
  if (child_runs || short_of_memory_ || !keep_open()) return after(options_.interval, &SelfTest::begin);
  running_ = Running{.begin = now()};
  if (const auto crossed = probe_.cross(); !crossed) {
    running_.reset();
    notifier_.failed(crossed.error());
    return after(options_.interval, &SelfTest::begin);
  }
  after(options_.patience, &SelfTest::look);
}

void SelfTest::probe_crossed() {
  if (!probe_.is_open()) return notifier_.wake("its cgroup went");
  if (!running_ || running_->told) return;  // the child's end is a crossing, too
  running_->told = now() - running_->begin;
  probe_.kill_child();
}

void SelfTest::look() {
  const auto child = probe_.child();
  const bool late = now() - running_->begin >= longest_crossing;
  const bool crosses = child == ProbeCgroup::Child::Runs && !late;
  // The word of one that has just ended may stand behind this in the loop.
  const bool has_crossed = child == ProbeCgroup::Child::Done && !running_->told && !running_->crossed;
  if (crosses || has_crossed) {
    running_->crossed = has_crossed;
    return after(options_.patience, &SelfTest::look);
  }
  const auto test = *std::exchange(running_, std::nullopt);
  const bool never_crossed = child == ProbeCgroup::Child::Runs && !probe_.may_be_held();
  probe_.kill_child();
  if (test.told) {
    took_ = test.told;
    ++passed_;
    silent_since_.reset();
    notifier_.works();
  } else if (child == ProbeCgroup::Child::Failed || never_crossed || !probe_.is_open()) {
    notifier_.failed({fmt::format("the level of {} could not be crossed", probe_.path())});
  } else if (silent()) {
    return after(core::Duration::zero(), &SelfTest::begin);
  }
  after(options_.interval, &SelfTest::begin);
}

/// Whether to test again at once: the first time.
bool SelfTest::silent() {
  notifier_.missed();
  for (const auto& source : sources_) source->rearm_all();
  notifier_.wake("every source is registered anew");
  const bool first = !silent_since_;
  silent_since_ = first ? std::optional(now()) : std::nullopt;
  const auto opened = probe_.open();
  if (opened) notifier_.re_registered(self_test_failed);
  if (!opened)
    notifier_.failed(opened.error());
  else if (!first)
    notifier_.failed(
        {fmt::format("the kernel does not tell that a level of {} was crossed, nor since it was "
                     "registered anew",
                     probe_.path())});
  return first;
}

std::vector<SourceStatus> SelfTest::status() const {
  auto status = notifier_.status("self-test " + probe_.path(), state_);
  status.detail = fmt::format("every {}; {} passed", core::to_string(options_.interval), passed_);
  if (took_)
    status.detail += fmt::format(", the last one told after {}",
                                 core::to_string(std::chrono::floor<std::chrono::microseconds>(*took_)));
  return {status};
}

}  // namespace evictd::wake
