#include "host/system_bus.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <systemd/sd-bus.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/process_table.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;

namespace evictd::test {

namespace {

void must(int result, const char* what) {
  if (result < 0) testbed::fail_errno(what, -result);
}

}  // namespace

void CloseBus::operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }

BusConnection connect_to_bus(const std::string& address) {
  sd_bus* bus = nullptr;
  must(sd_bus_new(&bus), "sd_bus_new");
  BusConnection connection{bus};
  must(sd_bus_set_address(bus, address.c_str()), "sd_bus_set_address");
  must(sd_bus_set_bus_client(bus, 1), "sd_bus_set_bus_client");
  must(sd_bus_negotiate_fds(bus, 1), "sd_bus_negotiate_fds");
  must(sd_bus_start(bus), "the test's bus");
  return connection;
}

SystemBus::SystemBus(const std::filesystem::path& directory) : directory_{directory} {
  testbed::replace_file(directory_ / "bus.conf",
                        fmt::format(R"(<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>{}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
)",
                                    address()));
  start();
}

std::optional<std::string> SystemBus::missing() {
  if (!testbed::find_program("dbus-daemon")) return "dbus-daemon is not installed";
  return std::nullopt;
}

std::string SystemBus::address() const { return "unix:path=" + (directory_ / "bus").native(); }

void SystemBus::stop() { daemon_.reset(); }

void SystemBus::start() {
  std::filesystem::remove(directory_ / "bus");
  daemon_.emplace(std::vector<std::string>{"dbus-daemon", "--nofork", "--nopidfile", "--nosyslog",
                                           "--config-file=" + (directory_ / "bus.conf").native()},
                  testbed::Process::Options{.environment = {testbed::mark_of(directory_)}});
  testbed::wait_until("dbus-daemon listens", 30s, [&] {
    if (!daemon_->running()) testbed::fail("dbus-daemon ended: " + daemon_->errors());
    return testbed::accepts(directory_ / "bus");
  });
}

struct BusPeer::State {
  State(BusConnection bus, Handler answers) : connection{std::move(bus)}, handler{std::move(answers)} {}

  BusConnection connection;
  Handler handler;
  std::mutex mutex;
  std::atomic<bool> ends = false;
  std::thread thread;

  void serve() {
    auto* const bus = connection.get();
    const int file = sd_bus_get_fd(bus);
    while (!ends) {
      {
        const std::lock_guard lock{mutex};
        int result = 1;
        while (result > 0) result = sd_bus_process(bus, nullptr);
        if (result < 0) return;  // the bus is gone
      }
      pollfd news{.fd = file, .events = POLLIN, .revents = 0};
      ::poll(&news, 1, 5);
    }
  }

  static int on_message(sd_bus_message* message, void* userdata, sd_bus_error*) {
    return static_cast<State*>(userdata)->handler(message) ? 1 : 0;
  }
};

BusPeer::BusPeer(const std::string& address, const char* name, const char* path, Handler handler)
    : state_{std::make_unique<State>(connect_to_bus(address), std::move(handler))} {
  auto* const bus = state_->connection.get();
  must(sd_bus_add_fallback(bus, nullptr, path, &State::on_message, state_.get()), path);
  must(sd_bus_request_name(bus, name, 0), name);
  state_->thread = std::thread([state = state_.get()] { state->serve(); });
}

BusPeer::~BusPeer() {
  state_->ends = true;
  state_->thread.join();
}

void BusPeer::with_bus(const std::function<void(sd_bus*)>& use) {
  const std::lock_guard lock{state_->mutex};
  use(state_->connection.get());
  sd_bus_flush(state_->connection.get());
}

bool is_call(sd_bus_message* message, const char* interface, const char* member) {
  return sd_bus_message_is_method_call(message, interface, member) > 0;
}

std::optional<std::string> property_asked_for(sd_bus_message* message) {
  if (!is_call(message, "org.freedesktop.DBus.Properties", "Get")) return std::nullopt;
  const char* interface = nullptr;
  const char* name = nullptr;
  must(sd_bus_message_read(message, "ss", &interface, &name), "Properties.Get");
  return name;
}

}  // namespace evictd::test
