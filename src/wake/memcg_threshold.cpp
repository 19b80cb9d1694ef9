#include "wake/memcg_threshold.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include "wake/signal_text.hpp"

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

std::int64_t coarseness() {
  constexpr std::int64_t batch_per_cpu = 128 * 4096;  // THRESHOLDS_EVENTS_TARGET pages
  static const auto result =
      std::max<std::int64_t>(2 * batch_per_cpu, batch_per_cpu * std::thread::hardware_concurrency());
  return result;
}

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
  Registration(asio::any_io_executor reactor, int event, const Wanted& level)
      : event{std::move(reactor), event}, level{level} {}

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
  void spoke() {
    above.reset();
    silent_since.reset();
  }

  asio::posix::stream_descriptor event;
  Wanted level;
  std::uint64_t count = 0;      // what read(2) of the eventfd fills in
  std::optional<bool> above{};  // where usage was since the kernel spoke last
  std::optional<core::Instant> silent_since{};
};

MemcgThreshold::MemcgThreshold(asio::any_io_executor reactor, Wakes& wakes, core::Signal signal,
                               const node::CgroupHierarchy& hierarchy, std::string cgroup)
    : reactor_{std::move(reactor)},
      notifier_{wakes, "memcg"},
      signal_{signal},
      hierarchy_{hierarchy},
      cgroup_{std::move(cgroup)} {}

MemcgThreshold::~MemcgThreshold() {
  for (const auto& registration : registrations_) registration->event.close();
}

Result<void> MemcgThreshold::open() {
  const auto directory = hierarchy_.memory(cgroup_);
  if (!directory) return std::unexpected(directory.error());
  const auto open_file = [&](const char* name, int flags) {
    return node::FileDescriptor{::openat(directory->descriptor(), name, flags | O_CLOEXEC)};
  };
  usage_ = open_file("memory.usage_in_bytes", O_RDONLY);
  if (!usage_) return std::unexpected(node::system_error(errno, directory->path() + "/memory.usage_in_bytes"));
  control_ = open_file("cgroup.event_control", O_WRONLY);
  if (!control_) return std::unexpected(node::system_error(errno, directory->path() + "/cgroup.event_control"));
  return {};
}

Result<std::shared_ptr<MemcgThreshold::Registration>> MemcgThreshold::register_level(const Wanted& level) {
  if (!control_ || level.incarnation != incarnation_)
    if (auto opened = open(); !opened) return std::unexpected(opened.error());
  incarnation_ = level.incarnation;
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) return std::unexpected(node::system_error(errno, "eventfd"));
  auto registration = std::make_shared<Registration>(reactor_, event, level);
  const auto command = fmt::format("{} {} {}", event, usage_.get(), std::max<std::int64_t>(level.bytes, 0));
  if (::write(control_.get(), command.data(), command.size()) < 0) {
    const auto error = node::system_error(errno, cgroup_ + "/cgroup.event_control");
    control_.reset();  // look the cgroup up again next time
    return std::unexpected(error);
  }
  return registration;
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
  bool silent = false;
  for (const auto& level : levels) {
    if (std::ranges::any_of(next, stands_for(level))) continue;
    const auto armed = std::ranges::find_if(registrations_, stands_for(level));
    const bool missed = armed != registrations_.end() && (*armed)->is_silent(level.current, arming.time);
    if (armed != registrations_.end() && !missed && !distrusted_) {
      next.push_back(*armed);
      continue;
    }
    silent = silent || missed;
    auto registration = register_level(level);
    // What is armed stays so.
    if (!registration) return notifier_.failed(registration.error().in(core::name(signal_)));
    next.push_back(*registration);
    if (!registrations_.empty()) notifier_.rearmed();
    wait(*registration);
  }
  notifier_.works();
  if (silent) notifier_.missed();
  if (silent)
    notifier_.re_registered("usage crossed a level and the kernel did not tell");
  else if (std::exchange(distrusted_, false) && !registrations_.empty())
    notifier_.re_registered(self_test_failed);
  else if (lost)
    notifier_.re_registered(cgroup_made_anew);
  next.swap(registrations_);
  for (const auto& old : next)
    if (std::ranges::find(registrations_, old) == registrations_.end()) old->event.close();
}

void MemcgThreshold::wait(const std::shared_ptr<Registration>& registration) {
  registration->event.async_read_some(asio::buffer(&registration->count, sizeof registration->count),
                                      [this, registration](boost::system::error_code error, std::size_t) {
                                        if (error == asio::error::operation_aborted || !registration->event.is_open())
                                          return;  // closed; `this` may be gone
                                        if (error) return notifier_.failed({error.message()});
                                        guards_ = false;  // until a pass has looked
                                        registration->spoke();
                                        notifier_.wake(registration->level.text(signal_));
                                        wait(registration);
                                      });
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
