#include "host/offers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/fanotify.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "host/login1.hpp"
#include "os/file_error.hpp"
#include "os/pidfd.hpp"

namespace evictd::host {
namespace {

#ifndef SYS_process_mrelease
constexpr long SYS_process_mrelease = 448;  // the same number on every architecture
#endif

Offer offer(std::string name, bool available, std::string detail, std::string consequence) {
  return {std::move(name), available, std::move(detail), available ? "" : std::move(consequence)};
}

Offer memcg_thresholds(const std::filesystem::path& memory_cgroup, bool v2) {
  const std::string consequence =
      "memory thresholds are noticed by the other wake sources, at the latest by the fallback timer";
  if (v2) return offer("memcg thresholds", false, "cgroup v2 has none", consequence);
  const auto control = memory_cgroup / "cgroup.event_control";
  const bool writable = access(control.c_str(), W_OK) == 0;
  return offer("memcg thresholds", writable, writable ? control.string() : control.string() + ": " + os::reason(errno),
               consequence);
}

Offer pressure_stall_information() {
  const int file = open("/proc/pressure/memory", O_RDONLY | O_CLOEXEC);
  const bool available = file >= 0;
  auto detail = available ? std::string("/proc/pressure/memory") : "/proc/pressure/memory: " + os::reason(errno);
  if (available) close(file);
  return offer("PSI", available, std::move(detail), "stalls do not start a pass (boot with psi=1)");
}

Offer pidfd() {
  const bool available{os::open_pidfd(getpid())};
  return offer("pidfd", available, available ? "pidfd_open(2)" : os::reason(errno),
               "processes are not signalled directly, since a reused pid could hit a stranger; CRI alone stops pods");
}

Offer process_mrelease() {
  // An invalid descriptor: EBADF says that the call is there, ENOSYS that it is not.
  const bool available = syscall(SYS_process_mrelease, -1, 0) == 0 || errno != ENOSYS;
  return offer("process_mrelease", available, available ? "process_mrelease(2)" : "needs Linux 5.15",
               "killed processes return their memory at the kernel's own pace");
}

/// The root cgroup has few files of its own, its children have.
std::optional<std::filesystem::path> file_below(const std::filesystem::path& cgroup, const char* name) {
  if (access((cgroup / name).c_str(), F_OK) == 0) return cgroup / name;
  std::error_code ignored;
  for (const auto& child : std::filesystem::directory_iterator(cgroup, ignored))
    if (child.is_directory(ignored) && access((child.path() / name).c_str(), F_OK) == 0) return child.path() / name;
  return std::nullopt;
}

/// A file that cgroups have on v2 only.
Offer cgroup_file(const char* name, const char* since, const std::filesystem::path& memory_cgroup, bool v2,
                  std::string consequence) {
  if (!v2) return offer(name, false, "cgroup v1 has none", std::move(consequence));
  if (const auto file = file_below(memory_cgroup, name)) return offer(name, true, file->string(), "");
  return offer(name, false, fmt::format("no cgroup below the node's has it ({})", since), std::move(consequence));
}

Offer fanotify() {
  const int group = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_REPORT_DFID_NAME, O_RDONLY | O_CLOEXEC);
  const bool available = group >= 0;
  auto detail =
      available ? std::string("fanotify_init(2)") : os::reason(errno) + " (needs Linux 5.9 and CAP_SYS_ADMIN)";
  if (available) close(group);
  return offer("fanotify", available, std::move(detail), "each directory of a pod's volumes and logs takes a watch");
}

/// logind, and where a shutdown has to wait for pods, whether it lets it wait long enough.
std::vector<Offer> logind(core::Duration needed) {
  const std::string consequence = "a graceful node shutdown is not noticed";
  sd_bus* bus = nullptr;
  if (const int error = sd_bus_open_system(&bus); error < 0)
    return {offer("logind", false, fmt::format("no system bus: {}", std::strerror(-error)), consequence)};
  std::uint64_t delay = 0;  // µs
  const int known = sd_bus_get_property_trivial(bus, login1, login1_path, login1_manager, "InhibitDelayMaxUSec",
                                                nullptr, 't', &delay);
  sd_bus_flush_close_unref(bus);
  if (known < 0)
    return {offer("logind", false, fmt::format("{} does not answer on the system bus", login1), consequence)};
  std::vector<Offer> offers{offer("logind", true, login1, "")};
  if (needed == core::Duration::zero()) return offers;
  constexpr std::uint64_t longest = 1'000'000'000'000'000;
  const core::Duration granted = std::chrono::microseconds(std::min(delay, longest));
  offers.push_back(offer("shutdown delay", granted >= needed,
                         fmt::format("InhibitDelayMaxUSec is {}, the pods' shutdown grace periods take {}",
                                     core::to_string(granted), core::to_string(needed)),
                         "a shutdown does not wait for all pods, unless shutdown.raiseInhibitDelay is set"));
  return offers;
}

}  // namespace

std::vector<Offer> probe_offers(const std::filesystem::path& memory_cgroup, bool v2, core::Duration shutdown_delay) {
  std::vector<Offer> offers{
      memcg_thresholds(memory_cgroup, v2),
      cgroup_file("memory.events", "needs the memory controller", memory_cgroup, v2,
                  "that pods meet their limits does not start a pass"),
      cgroup_file("memory.high", "needs the memory controller", memory_cgroup, v2,
                  "notifier.v2 can be nothing but sampler"),
      pressure_stall_information(),
      fanotify(),
      pidfd(),
      process_mrelease(),
      cgroup_file("cgroup.kill", "needs Linux 5.14", memory_cgroup, v2, "processes of a pod are signalled one by one")};
  for (auto& each : logind(shutdown_delay)) offers.push_back(std::move(each));
  return offers;
}

}  // namespace evictd::host
