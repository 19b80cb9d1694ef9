#include "wake/memcg_threshold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "core/duration.hpp"
#include "core/signal.hpp"
#include "wake/memcg_event.hpp"
#include "wake/signal_text.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

std::int64_t coarseness() {
  constexpr std::int64_t batch_per_cpu = std::int64_t{128} * 4096;  // THRESHOLDS_EVENTS_TARGET pages
  static const auto result =
      std::max<std::int64_t>(2 * batch_per_cpu, batch_per_cpu * std::thread::hardware_concurrency());
  return result;
}

constexpr std::string_view usage_file = "memory.usage_in_bytes";

/// After so long the kernel's word is not on its way any more.
constexpr core::Duration moment = std::chrono::seconds(1);

}  // namespace

/// A level of the usage, bytes, and the threshold it stands for.
struct MemcgThreshold::Wanted {
  std::int64_t threshold = 0;
  std::int64_t bytes = 0;
  std::uint64_t incarnation = 0;
  std::int64_t current = 0;  // usage, when the level was wanted
  bool early = false;        // met only if file cache is taken back until then

  [[nodiscard]] bool is_near(const Wanted& other, std::int64_t tolerance) const {
    return threshold == other.threshold && incarnation == other.incarnation && early == other.early &&
           std::abs(bytes - other.bytes) <= tolerance;
  }
  [[nodiscard]] std::string text(core::Signal signal) const {
    return threshold_text(signal, threshold) + (early ? " unless file cache" : "");
  }
};

struct MemcgThreshold::Registration {
  Registration(asio::any_io_executor reactor, const Wanted& level) : event{std::move(reactor)}, level{level} {}

  /// Usage went over to the other side of the level, by more than the kernel's coarseness, and is still there a moment
  /// later, while nothing was told.
  [[nodiscard]] bool is_silent(std::int64_t usage, core::Instant time) {
    const bool beyond = usage > level.bytes;
    if (std::abs(usage - level.bytes) <= coarseness() || above.value_or(beyond) == beyond) {
      silent_since.reset();
      if (std::abs(usage - level.bytes) > coarseness()) above = beyond;
      return false;
    }
    return time - *(silent_since = silent_since.value_or(time)) >= moment;
  }
  void on_event() {
    above.reset();
    silent_since.reset();
  }

  MemcgEvent event;
  Wanted level;
  std::optional<bool> above{};  // where usage was since the kernel reported last
  std::optional<core::Instant> silent_since{};
};

MemcgThreshold::MemcgThreshold(asio::any_io_executor reactor, Wakes& wakes, core::Signal signal,
                               const node::CgroupHierarchy& hierarchy, std::string cgroup)
    : reactor_{std::move(reactor)},
      notifier_{wakes, core::WakeSource::Memcg},
      signal_{signal},
      hierarchy_{hierarchy},
      cgroup_{std::move(cgroup)} {}

MemcgThreshold::~MemcgThreshold() = default;

Result<std::shared_ptr<MemcgThreshold::Registration>> MemcgThreshold::register_level(const Wanted& level) {
  const auto directory = hierarchy_.memory(cgroup_);
  if (!directory) return std::unexpected(directory.error());
  auto registration = std::make_shared<Registration>(reactor_, level);
  const auto opened = registration->event.open(*directory, std::string{usage_file},
                                               std::to_string(std::max<std::int64_t>(level.bytes, 0)),
                                               [this, its = registration.get()] { on_event(*its); });
  if (!opened) return std::unexpected(opened.error());
  incarnation_ = level.incarnation;
  wake_if_crossed(*directory, *registration);
  return registration;
}

/// The kernel compares with the usage as it is when a level is registered: of a crossing between the node's reading and
/// that it tells nothing.
void MemcgThreshold::wake_if_crossed(const os::Directory& cgroup, Registration& registration) {
  const auto& level = registration.level;
  const auto file = cgroup.file(usage_file);
  const auto usage = file ? file->read_number() : std::unexpected(file.error());
  if (usage && level.current <= level.bytes && *usage > level.bytes) on_event(registration);
}

void MemcgThreshold::on_event(Registration& registration) {
  guards_ = false;  // until a pass has looked
  registration.on_event();
  notifier_.wake(registration.level.text(signal_));
}

/// Sets guards_, too: whether all this, once armed, is seen in time.
std::vector<MemcgThreshold::Wanted> MemcgThreshold::wanted(const Arming& arming) {
  const auto tolerance = coarseness();
  std::vector<Wanted> result;
  guards_ = true;
  for (const auto& level : arming.levels) {
    if (level.signal != signal_ || !level.usage) continue;
    const auto& usage = *level.usage;
    Wanted exact{
        .threshold = level.threshold, .bytes = usage.bytes, .incarnation = usage.incarnation, .current = usage.current};
    result.push_back(exact);
    const bool from_below = usage.without_reclaimable && usage.current + tolerance < *usage.without_reclaimable;
    guards_ = guards_ && from_below;
    if (!from_below || usage.bytes - *usage.without_reclaimable <= tolerance) continue;
    exact.bytes = *usage.without_reclaimable;
    exact.early = true;
    result.push_back(exact);
  }
  guards_ = guards_ && !result.empty();
  return result;
}

void MemcgThreshold::arm(const Arming& arming) {
  Registrations next;
  const auto stands_for = [tolerance = coarseness()](const Wanted& level) {
    return [&level, tolerance](const auto& known) { return known->level.is_near(level, tolerance); };
  };
  const auto levels = wanted(arming);
  const bool lost = incarnation_ != 0 && !levels.empty() && levels.front().incarnation != incarnation_;
  const bool rearms_all = std::exchange(rearm_all_, false);
  bool silent = false;
  for (const auto& level : levels) {
    if (std::ranges::any_of(next, stands_for(level))) continue;
    const auto armed = std::ranges::find_if(registrations_, stands_for(level));
    const bool missed = armed != registrations_.end() && (*armed)->is_silent(level.current, arming.time);
    if (armed != registrations_.end() && !missed && !rearms_all) {
      next.push_back(*armed);
      continue;
    }
    silent = silent || missed;
    auto registration = register_level(level);
    if (!registration) {  // what is armed stays so
      rearm_all_ = rearms_all;
      return notifier_.failed(registration.error().in(core::name(signal_)));
    }
    next.push_back(*registration);
    if (!registrations_.empty()) notifier_.rearmed();
  }
  notifier_.works();
  if (silent) notifier_.missed();
  if (silent)
    notifier_.re_registered("usage crossed a level and the kernel did not tell");
  else if (rearms_all && !registrations_.empty())
    notifier_.re_registered(self_test_failed);
  else if (lost)
    notifier_.re_registered(cgroup_made_anew);
  registrations_ = std::move(next);
}

std::vector<SourceStatus> MemcgThreshold::status() const {
  std::vector<SourceStatus> result;
  for (const auto& registration : registrations_) {
    result.push_back(notifier_.status("memcg " + registration->level.text(signal_), "armed"));
    result.back().level = registration->level.bytes;
  }
  if (result.empty())
    result.push_back(notifier_.status(fmt::format("memcg {}", core::name(signal_)), "waiting: no level yet"));
  return result;
}

}  // namespace evictd::wake
