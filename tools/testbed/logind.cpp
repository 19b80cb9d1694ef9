#include "testbed/logind.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <systemd/sd-bus.h>

#include <chrono>
#include <cstdint>
#include <filesystem>

#include "host/login1.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;

namespace testbed {

namespace {

constexpr auto program = "/lib/systemd/systemd-logind";
using evictd::host::login1;
using evictd::host::login1_manager;
using evictd::host::login1_path;

/// A connection for one question.
class Client {
 public:
  explicit Client(const std::string& address) {
    const bool open = sd_bus_new(&bus_) >= 0 && sd_bus_set_address(bus_, address.c_str()) >= 0 &&
                      sd_bus_set_bus_client(bus_, 1) >= 0 && sd_bus_start(bus_) >= 0;
    if (!open) fail("the test's bus does not answer");
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { sd_bus_flush_close_unref(bus_); }
  [[nodiscard]] sd_bus* get() const { return bus_; }

 private:
  sd_bus* bus_ = nullptr;
};

}  // namespace

std::optional<std::string> Logind::missing() {
  for (const char* needed : {"dbus-daemon", "unshare", "mount"})
    if (!find_program(needed)) return fmt::format("{} is not installed", needed);
  if (!std::filesystem::exists(program)) return fmt::format("{} is not installed", program);
  return std::nullopt;
}

Logind::Logind(Testbed& testbed, std::chrono::seconds inhibit_delay)
    : testbed_{testbed}, state_{testbed.directory() / "systemd"}, bus_{testbed.directory()} {
  for (const char* name : {"inhibit", "seats", "sessions", "users", "machines", "shutdown", "logind.conf.d"})
    std::filesystem::create_directories(state_ / name);
  replace_file(drop_ins() / "10-test.conf", fmt::format("[Login]\nInhibitDelayMaxSec={}\n", inhibit_delay.count()));
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
  wait_until("systemd-logind answers", 60s, [&] {
    if (!logind_->running()) fail("systemd-logind ended: " + logind_->errors());
    const Client client{bus_.address()};
    int preparing = 0;
    return sd_bus_get_property_trivial(client.get(), login1, login1_path, login1_manager, "PreparingForShutdown",
                                       nullptr, 'b', &preparing) >= 0;
  });
}

void Logind::restart_bus() {
  bus_.stop();
  logind_.reset();
  bus_.start();
  start();
}

Descriptor Logind::take_lock(const char* who) const {
  const Client client{bus_.address()};
  sd_bus_message* answer = nullptr;
  int descriptor = -1;
  if (sd_bus_call_method(client.get(), login1, login1_path, login1_manager, "Inhibit", nullptr, &answer, "ssss",
                         "shutdown", who, "a test", "delay") < 0 ||
      sd_bus_message_read(answer, "h", &descriptor) <= 0)
    fail("logind gives no lock");
  Descriptor lock{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)};
  sd_bus_message_unref(answer);
  return lock;
}

void Logind::power_off() {
  const Client client{bus_.address()};
  sd_bus_error error = SD_BUS_ERROR_NULL;
  if (sd_bus_call_method(client.get(), login1, login1_path, login1_manager, "PowerOff", &error, nullptr, "b", 0) < 0)
    fail(fmt::format("PowerOff: {}", error.message));
}

std::vector<std::string> Logind::inhibitors() const {
  const Client client{bus_.address()};
  sd_bus_message* answer = nullptr;
  if (sd_bus_call_method(client.get(), login1, login1_path, login1_manager, "ListInhibitors", nullptr, &answer,
                         nullptr) < 0)
    fail("ListInhibitors fails");
  std::vector<std::string> result;
  const char* what = nullptr;
  const char* who = nullptr;
  const char* why = nullptr;
  const char* mode = nullptr;
  std::uint32_t uid = 0;
  std::uint32_t pid = 0;
  sd_bus_message_enter_container(answer, 'a', "(ssssuu)");
  while (sd_bus_message_read(answer, "(ssssuu)", &what, &who, &why, &mode, &uid, &pid) > 0)
    result.push_back(fmt::format("{} {} {}", who, what, mode));
  sd_bus_message_unref(answer);
  return result;
}

bool Logind::preparing_for_shutdown() const {
  const Client client{bus_.address()};
  int preparing = 0;
  if (sd_bus_get_property_trivial(client.get(), login1, login1_path, login1_manager, "PreparingForShutdown", nullptr,
                                  'b', &preparing) < 0)
    fail("PreparingForShutdown cannot be read");
  return preparing != 0;
}

}  // namespace testbed
