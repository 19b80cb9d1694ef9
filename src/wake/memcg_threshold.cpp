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

std::string describe(const MemoryLevel& level) {
  return fmt::format("{}<{}", core::name(level.signal), core::Quantity::bytes(level.available).to_string());
}

}  // namespace

struct MemcgThreshold::Registration {
  Registration(asio::any_io_executor reactor, int event, MemoryLevel level)
      : event{std::move(reactor), event}, level{level} {}

  asio::posix::stream_descriptor event;
  MemoryLevel level;
  std::uint64_t count = 0;  // what read(2) of the eventfd fills in
};

MemcgThreshold::MemcgThreshold(asio::any_io_executor reactor, Wakes& wakes, core::Signal signal,
                               const node::CgroupHierarchy& hierarchy, std::string cgroup)
    : reactor_{std::move(reactor)}, wakes_{wakes}, signal_{signal}, hierarchy_{hierarchy}, cgroup_{std::move(cgroup)} {}

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

Result<std::shared_ptr<MemcgThreshold::Registration>> MemcgThreshold::register_level(const MemoryLevel& level) {
  if (!control_ || level.incarnation != incarnation_)
    if (auto opened = open(); !opened) return std::unexpected(opened.error());
  incarnation_ = level.incarnation;
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) return std::unexpected(node::system_error(errno, "eventfd"));
  auto registration = std::make_shared<Registration>(reactor_, event, level);
  const auto command = fmt::format("{} {} {}", event, usage_.get(), std::max<std::int64_t>(level.usage, 0));
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
  for (const auto& level : arming.memory) {
    if (level.signal != signal_) continue;
    const auto armed = std::ranges::find_if(registrations_, [&](const auto& known) {
      return known->level.available == level.available && known->level.incarnation == level.incarnation &&
             std::abs(known->level.usage - level.usage) <= tolerance;
    });
    if (armed != registrations_.end()) {
      next.push_back(*armed);
      continue;
    }
    auto registration = register_level(level);
    if (!registration) return fail(registration.error());
    next.push_back(*registration);
    wait(*registration);
  }
  failure_.clear();
  next.swap(registrations_);
  for (const auto& old : next)
    if (std::ranges::find(registrations_, old) == registrations_.end()) old->event.close();
}

/// Keeps what is armed; says so only when the failure is a new one.
void MemcgThreshold::fail(const Error& error) {
  if (failure_ == error.message) return;
  failure_ = error.message;
  wakes_.degraded("memcg", error.in(core::name(signal_)));
}

void MemcgThreshold::wait(const std::shared_ptr<Registration>& registration) {
  registration->event.async_read_some(asio::buffer(&registration->count, sizeof registration->count),
                                      [this, registration](boost::system::error_code error, std::size_t) {
                                        if (error == asio::error::operation_aborted || !registration->event.is_open())
                                          return;  // closed; `this` may be gone
                                        if (error) return fail({error.message()});
                                        ++wakes_count_;
                                        last_wake_ = std::chrono::steady_clock::now();
                                        wakes_.notify({"memcg", describe(registration->level), *last_wake_});
                                        wait(registration);
                                      });
}

std::vector<SourceStatus> MemcgThreshold::status() const {
  std::vector<SourceStatus> result;
  for (const auto& registration : registrations_)
    result.push_back({.name = "memcg " + describe(registration->level),
                      .state = failure_.empty() ? "armed" : "failed: " + failure_,
                      .level = registration->level.usage,
                      .wakes = wakes_count_,
                      .last_wake = last_wake_});
  if (result.empty())
    result.push_back({.name = fmt::format("memcg {}", core::name(signal_)),
                      .state = failure_.empty() ? "waiting: no level yet" : "failed: " + failure_});
  return result;
}

}  // namespace evictd::wake
