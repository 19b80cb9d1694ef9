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
#include <thread>

#include "core/quantity.hpp"

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

std::int64_t coarseness() {
  constexpr std::int64_t batch_per_cpu = 128 * 4096;  // THRESHOLDS_EVENTS_TARGET pages
  return std::max<std::int64_t>(2 * batch_per_cpu, batch_per_cpu * std::thread::hardware_concurrency());
}

std::string describe(core::Signal signal, std::int64_t threshold) {
  return fmt::format("{}<{}", core::name(signal), core::Quantity::bytes(threshold).to_string());
}

}  // namespace

struct MemcgThreshold::Registration {
  Registration(asio::any_io_executor reactor, int event, std::int64_t threshold, UsageLevel usage)
      : event{std::move(reactor), event}, threshold{threshold}, usage{usage} {}

  asio::posix::stream_descriptor event;
  std::int64_t threshold;
  UsageLevel usage;
  std::uint64_t count = 0;  // what read(2) of the eventfd fills in
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

Result<std::shared_ptr<MemcgThreshold::Registration>> MemcgThreshold::register_level(const Level& level) {
  if (!control_ || level.usage->incarnation != incarnation_)
    if (auto opened = open(); !opened) return std::unexpected(opened.error());
  incarnation_ = level.usage->incarnation;
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) return std::unexpected(node::system_error(errno, "eventfd"));
  auto registration = std::make_shared<Registration>(reactor_, event, level.threshold, *level.usage);
  const auto command = fmt::format("{} {} {}", event, usage_.get(), std::max<std::int64_t>(level.usage->bytes, 0));
  if (::write(control_.get(), command.data(), command.size()) < 0) {
    const auto error = node::system_error(errno, cgroup_ + "/cgroup.event_control");
    control_.reset();  // look the cgroup up again next time
    return std::unexpected(error);
  }
  return registration;
}

void MemcgThreshold::arm(const Arming& arming) {
  static const auto tolerance = coarseness();
  Registrations next;
  const auto stands_for = [&](const Level& level) {
    return [&level](const auto& known) {
      return known->threshold == level.threshold && known->usage.incarnation == level.usage->incarnation &&
             std::abs(known->usage.bytes - level.usage->bytes) <= tolerance;
    };
  };
  for (const auto& level : arming.levels) {
    if (level.signal != signal_ || !level.usage || std::ranges::any_of(next, stands_for(level))) continue;
    const auto armed = std::ranges::find_if(registrations_, stands_for(level));
    if (armed != registrations_.end()) {
      next.push_back(*armed);
      continue;
    }
    auto registration = register_level(level);
    // What is armed stays so.
    if (!registration) return notifier_.failed(registration.error().in(core::name(signal_)));
    next.push_back(*registration);
    wait(*registration);
  }
  notifier_.works();
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
                                        notifier_.wake(describe(signal_, registration->threshold));
                                        wait(registration);
                                      });
}

std::vector<SourceStatus> MemcgThreshold::status() const {
  std::vector<SourceStatus> result;
  for (const auto& registration : registrations_) {
    result.push_back(notifier_.status("memcg " + describe(signal_, registration->threshold), "armed"));
    result.back().level = registration->usage.bytes;
  }
  if (result.empty())
    result.push_back(notifier_.status(fmt::format("memcg {}", core::name(signal_)), "waiting: no level yet"));
  return result;
}

}  // namespace evictd::wake
