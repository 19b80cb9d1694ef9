#include "logind.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <systemd/sd-bus.h>

#include <chrono>
#include <filesystem>

#include "host/login1.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;

namespace integration {

namespace {

constexpr auto program = "/lib/systemd/systemd-logind";
using evictd::host::login1;
using evictd::host::login1_manager;
using evictd::host::login1_path;
using evictd::test::BusConnection;
using evictd::test::connect_to_bus;

/// Nothing while nobody answers.
std::optional<bool> is_preparing(const BusConnection& bus) {
  int preparing = 0;
  if (sd_bus_get_property_trivial(bus.get(), login1, login1_path, login1_manager, "PreparingForShutdown", nullptr, 'b',
                                  &preparing) < 0)
    return std::nullopt;
  return preparing != 0;
}

}  // namespace

std::optional<std::string> Logind::missing() {
  if (auto bus = evictd::test::SystemBus::missing()) return bus;
  for (const char* needed : {"unshare", "mount"})
    if (!testbed::find_program(needed)) return fmt::format("{} is not installed", needed);
  if (!std::filesystem::exists(program)) return fmt::format("{} is not installed", program);
  return std::nullopt;
}

Logind::Logind(testbed::Testbed& testbed, std::chrono::seconds inhibit_delay)
    : testbed_{testbed}, state_{testbed.directory() / "systemd"}, bus_{testbed.directory()} {
  for (const char* name : {"inhibit", "seats", "sessions", "users", "machines", "shutdown", "logind.conf.d"})
    std::filesystem::create_directories(state_ / name);
  testbed::replace_file(drop_ins() / "10-test.conf",
                        fmt::format("[Login]\nInhibitDelayMaxSec={}\n", inhibit_delay.count()));
  start();
}

void Logind::start() {
  systemd_.reset();
  systemd_.emplace(bus_, [this](const std::string& unit, int signal) {
    if (unit == "systemd-logind.service") logind_->signal(signal);
  });
  restart();
}

void Logind::restart() {
  logind_.reset();
  logind_.emplace(testbed_.spawn(
      {"unshare", "--mount", "--propagation", "private", "sh", "-c",
       fmt::format("mkdir -p /run/systemd && mount --bind \"$1\" /run/systemd && exec {}", program), "sh", state_},
      {.environment = {bus_.variable()}}));
  testbed::wait_until("systemd-logind answers", 60s, [&] {
    if (!logind_->running()) testbed::fail("systemd-logind ended: " + logind_->errors());
    return is_preparing(connect_to_bus(bus_.address())).has_value();
  });
}

void Logind::restart_bus() {
  bus_.stop();
  logind_.reset();
  bus_.start();
  start();
}

evictd::os::FileDescriptor Logind::take_lock(const char* who) const {
  const auto bus = connect_to_bus(bus_.address());
  sd_bus_message* answer = nullptr;
  int descriptor = -1;
  if (sd_bus_call_method(bus.get(), login1, login1_path, login1_manager, "Inhibit", nullptr, &answer, "ssss",
                         "shutdown", who, "a test", "delay") < 0 ||
      sd_bus_message_read(answer, "h", &descriptor) <= 0)
    testbed::fail("logind gives no lock");
  evictd::os::FileDescriptor lock{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)};
  sd_bus_message_unref(answer);
  return lock;
}

void Logind::power_off() {
  const auto bus = connect_to_bus(bus_.address());
  sd_bus_error error = SD_BUS_ERROR_NULL;
  if (sd_bus_call_method(bus.get(), login1, login1_path, login1_manager, "PowerOff", &error, nullptr, "b", 0) < 0)
    testbed::fail(fmt::format("PowerOff: {}", error.message));
}

std::vector<std::string> Logind::inhibitors() const {
  const auto bus = connect_to_bus(bus_.address());
  sd_bus_message* answer = nullptr;
  if (sd_bus_call_method(bus.get(), login1, login1_path, login1_manager, "ListInhibitors", nullptr, &answer, nullptr) <
      0)
    testbed::fail("ListInhibitors fails");
  std::vector<std::string> result;
  const char* what = nullptr;
  const char* who = nullptr;
  const char* mode = nullptr;
  sd_bus_message_enter_container(answer, 'a', "(ssssuu)");
  while (sd_bus_message_read(answer, "(ssssuu)", &what, &who, nullptr, &mode, nullptr, nullptr) > 0)
    result.push_back(fmt::format("{} {} {}", who, what, mode));
  sd_bus_message_unref(answer);
  return result;
}

bool Logind::preparing_for_shutdown() const {
  const auto preparing = is_preparing(connect_to_bus(bus_.address()));
  if (!preparing) testbed::fail("PreparingForShutdown cannot be read");
  return *preparing;
}

}  // namespace integration
