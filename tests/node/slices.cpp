#include "slices.hpp"

#include <fmt/format.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/wait.hpp"

namespace node_suite {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::core::QosClass;

namespace {

constexpr auto systemd = "org.freedesktop.systemd1";

std::string_view parent_of(std::string_view slice) {
  const auto dash = slice.rfind('-');
  return dash == std::string_view::npos ? "-" : slice.substr(0, dash);
}

/// `fill` appends the arguments.
template <class Fill>
void call_manager(sd_bus* bus, const char* method, Fill fill) {
  sd_bus_message* request = nullptr;
  sd_bus_error error = SD_BUS_ERROR_NULL;
  auto done = sd_bus_message_new_method_call(bus, &request, systemd, "/org/freedesktop/systemd1",
                                             "org.freedesktop.systemd1.Manager", method);
  if (done >= 0) done = fill(request);
  const auto deadline = std::chrono::duration_cast<std::chrono::microseconds>(testbed::patient(30s)).count();
  if (done >= 0) done = sd_bus_call(bus, request, static_cast<std::uint64_t>(deadline), &error, nullptr);
  sd_bus_message_unref(request);
  const std::string said = error.message == nullptr ? "" : error.message;
  sd_bus_error_free(&error);
  if (done < 0) testbed::fail_errno(fmt::format("systemd's {}: {}", method, said), -done);
}

}  // namespace

Slices::Slices() {
  if (const auto opened = sd_bus_open_system(&bus_); opened < 0) testbed::fail_errno("the system bus", -opened);
}

Slices::~Slices() { sd_bus_flush_close_unref(bus_); }

std::string Slices::pod_cgroup(QosClass qos, std::string_view uid) const {
  std::string escaped{uid};
  std::ranges::replace(escaped, '-', '_');
  const std::string_view level = qos == QosClass::Burstable    ? "-burstable"
                                 : qos == QosClass::BestEffort ? "-besteffort"
                                                               : "";
  return fmt::format("kubepods{}-pod{}.slice", level, escaped);
}

fs::path Slices::directory(std::string_view slice) {
  const auto name = slice.substr(0, slice.rfind('.'));
  fs::path path{fmt::format("{}.slice", name)};
  for (auto above = parent_of(name); above != "-"; above = parent_of(above))
    path = fmt::format("{}.slice", above) / path;
  return testbed::cgroup_host().memory / path;
}

std::vector<pid_t> Slices::processes(std::string_view slice) const {
  return testbed::processes_in_cgroup(directory(slice));
}

std::int64_t Slices::memory_capacity() const {
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
}

void Slices::make(const std::string& slice) const {
  const auto parent = fmt::format("{}.slice", parent_of(slice.substr(0, slice.rfind('.'))));
  call_manager(bus_, "StartTransientUnit", [&](sd_bus_message* request) {
    return sd_bus_message_append(request, "ssa(sv)a(sa(sv))", slice.c_str(), "replace", 6,  //
                                 "DefaultDependencies", "b", 0,                             //
                                 "Wants", "as", 1, parent.c_str(),                          //
                                 "MemoryAccounting", "b", 1,                                //
                                 "CPUAccounting", "b", 1,                                   //
                                 "IOAccounting", "b", 1,                                    //
                                 "TasksAccounting", "b", 1,                                 //
                                 0);
  });
  testbed::wait_until(slice + " is there", 30s, [&] { return fs::exists(directory(slice)); });
}

void Slices::remove(const std::string& slice) const {
  if (!fs::exists(directory(slice))) return;
  call_manager(bus_, "StopUnit",
               [&](sd_bus_message* request) { return sd_bus_message_append(request, "ss", slice.c_str(), "replace"); });
  testbed::wait_until(slice + " is gone", 30s, [&] { return !fs::exists(directory(slice)); });
}

}  // namespace node_suite
