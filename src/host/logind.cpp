#include "host/logind.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <systemd/sd-bus.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <thread>
#include <utility>

#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "host/login1.hpp"
#include "os/atomic_file.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::host {
namespace {

constexpr auto drop_in_name = "99-evictd.conf";

std::int64_t seconds_of(core::Duration duration) { return std::chrono::ceil<std::chrono::seconds>(duration).count(); }

Result<void> fill(const BusMessage& message, std::initializer_list<const char*> strings) {
  for (const char* text : strings)
    if (const int result = sd_bus_message_append_basic(message.get(), 's', text); result < 0)
      return bus_error(result, "a message");
  return {};
}

template <class T>
Result<T> read_variant(const BusMessage& message, char type) {
  const char contents[]{type, '\0'};
  T value{};
  int result = sd_bus_message_enter_container(message.get(), 'v', contents);
  if (result > 0) result = sd_bus_message_read_basic(message.get(), type, &value);
  if (result <= 0) return fail("logind's answer is not what it should be");
  return value;
}

/// Ours; the message closes its own.
Result<InhibitorLock> read_lock(const BusMessage& message) {
  int descriptor = -1;
  if (sd_bus_message_read_basic(message.get(), 'h', &descriptor) <= 0) return fail("logind's answer has no lock in it");
  const int ours = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (ours < 0) return bus_error(-errno, "the lock");
  return InhibitorLock{ours};
}

}  // namespace

Logind::Logind(asio::any_io_executor reactor, LogindOptions options, InhibitorLock inherited, Listener& listener)
    : reactor_{reactor},
      options_{std::move(options)},
      listener_{listener},
      timer_{reactor},
      lock_{std::move(inherited)},
      wants_lock_{lock_.held()} {}

asio::awaitable<void> Logind::run() {
  while (!stopping_) {
    const auto ended = co_await session();
    bus_.reset();
    connected_ = false;
    if (stopping_) break;
    connection_error_ = ended.message;
    report();
    co_await sleep(options_.reconnect_interval);
  }
}

void Logind::stop() {
  stopping_ = true;
  timer_.cancel();
}

/// Ends with the connection, and says why.
asio::awaitable<Error> Logind::session() {
  lost_.clear();
  signalled_.reset();
  auto connected = Bus::connect(reactor_, [this](const Error& error) { lose(error); });
  if (!connected) co_return connected.error();
  bus_ = *std::move(connected);
  const auto watched = watch();
  if (!watched) co_return watched.error();
  const auto looked = co_await look();
  if (!looked) co_return looked.error();
  for (bool refused = false; lost_.empty() && !stopping_;) {
    if (refused && !lock_error_.empty() && wants_lock_) take_lock();
    refused = !lock_error_.empty();
    const core::Duration pause = refused ? options_.reconnect_interval : 1h;
    co_await sleep(pause);  // lose(), stop() and the first refusal cancel it
  }
  co_return Error{lost_};
}

void Logind::lose(const Error& error) {
  if (lost_.empty()) lost_ = error.message;
  timer_.cancel();
}

/// Before anything is asked: what happens between an answer and the next question is told.
Result<void> Logind::watch() {
  auto watched =
      bus_->match(fmt::format("type='signal',sender='{}',path='{}',interface='{}',member='PrepareForShutdown'", login1,
                              login1_path, login1_manager),
                  [this](sd_bus_message* message) {
                    int pending = 0;
                    if (sd_bus_message_read_basic(message, 'b', &pending) <= 0) return;
                    signalled_ = pending != 0;
                    if (connected_) listener_.shutdown_pending(*signalled_);
                  });
  if (!watched) return watched;
  return bus_->match(fmt::format("type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                                 "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='{}'",
                                 login1),
                     [this](sd_bus_message*) { lose({"systemd-logind left the system bus, or came back"}); });
}

asio::awaitable<Result<void>> Logind::look() {
  auto delay = co_await inhibit_delay();
  if (!delay) co_return std::unexpected(delay.error());
  if (*delay < options_.needed && options_.raise_inhibit_delay) delay = co_await raise_inhibit_delay();
  judge_delay(delay);
  const auto answer = co_await property("PreparingForShutdown");
  if (!answer) co_return std::unexpected(answer.error());
  const auto pending = read_variant<int>(*answer, 'b');
  if (!pending) co_return std::unexpected(pending.error());
  connected_ = true;
  // A signal that came after the answer, and before we got to read it, is newer; no signal is older than its answer.
  listener_.shutdown_pending(signalled_.value_or(*pending != 0));
  // All is not well before there is a lock, but for a shutdown that no lock can be had for any more.
  if (!status().error.empty() || !wants_lock_) report();
  co_return Result<void>{};
}

void Logind::judge_delay(const Result<core::Duration>& delay) {
  delay_error_.clear();
  if (delay) inhibit_delay_ = *delay;
  if (!delay)
    delay_error_ = delay.error().message;
  else if (*delay < options_.needed)
    delay_error_ = fmt::format(
        "systemd-logind lets a shutdown wait for {} only, and the pods' grace periods take {}: set "
        "InhibitDelayMaxSec={} in logind.conf(5), or shutdown.raiseInhibitDelay",
        core::to_string(*delay), core::to_string(options_.needed), seconds_of(options_.needed));
}

asio::awaitable<Result<BusMessage>> Logind::property(const char* name) {
  auto request = bus_->method({login1, login1_path, "org.freedesktop.DBus.Properties", "Get"});
  if (!request) co_return std::unexpected(request.error());
  if (const auto filled = fill(*request, {login1_manager, name}); !filled) co_return std::unexpected(filled.error());
  auto answer = co_await bus_->call(*std::move(request));
  if (!answer) co_return fail(answer.error(), fmt::format("systemd-logind's {}", name));
  co_return answer;
}

asio::awaitable<Result<core::Duration>> Logind::inhibit_delay() {
  const auto answer = co_await property("InhibitDelayMaxUSec");
  if (!answer) co_return std::unexpected(answer.error());
  const auto delay = read_variant<std::uint64_t>(*answer, 't');
  if (!delay) co_return std::unexpected(delay.error());
  constexpr std::uint64_t longest = 1'000'000'000'000'000;  // µs, 30 years: what is longer is as good as for ever
  co_return std::chrono::microseconds(std::min(*delay, longest));
}

/// On a thread of its own, which is given up when the disk does not answer: /etc is on one.
asio::awaitable<Result<void>> Logind::write_drop_in(std::filesystem::path file, std::string text) {
  struct Writing {
    std::atomic<bool> done = false;
    Result<void> result{};
  };
  const auto writing = std::make_shared<Writing>();
  std::thread{[writing, file, text = std::move(text)] {
    writing->result = os::write_atomically(file, text, {.mode = 0644, .durable = false});
    writing->done = true;
  }}.detach();
  const auto end = std::chrono::steady_clock::now() + 5s;
  while (!writing->done && lost_.empty() && !stopping_) {
    if (std::chrono::steady_clock::now() >= end) co_return fail(file.native() + ": the disk does not answer");
    co_await sleep(10ms);
  }
  if (!writing->done) co_return fail("the connection to systemd-logind ended");
  co_return writing->result;
}

/// As the kubelet does it, though under a name of our own: a drop-in, SIGHUP by systemd, and looking whether it worked.
asio::awaitable<Result<core::Duration>> Logind::raise_inhibit_delay() {
  const auto file = options_.drop_ins / drop_in_name;
  const auto text = fmt::format(
      "# Written by evictd (shutdown.raiseInhibitDelay): so long the pods' shutdown grace periods take.\n"
      "[Login]\nInhibitDelayMaxSec={}\n",
      seconds_of(options_.needed));
  if (const auto written = co_await write_drop_in(file, text); !written)
    co_return fail(written.error(), "shutdown.logindDropIns");
  auto request = bus_->method(
      {"org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "KillUnit"});
  if (!request) co_return std::unexpected(request.error());
  if (const auto filled = fill(*request, {"systemd-logind.service", "all"}); !filled)
    co_return std::unexpected(filled.error());
  const std::int32_t number = SIGHUP;
  sd_bus_message_append_basic(request->get(), 'i', &number);
  const auto answer = co_await bus_->call(*std::move(request));
  if (!answer) co_return fail(answer.error(), "systemd-logind could not be told to read " + file.native());
  core::Duration pause = 100ms;
  auto delay = co_await inhibit_delay();
  for (int tries = 1; tries < 5 && delay && *delay < options_.needed && lost_.empty(); ++tries) {
    co_await sleep(pause);
    pause *= 2;
    delay = co_await inhibit_delay();
  }
  co_return delay;
}

void Logind::take_lock() {
  wants_lock_ = true;
  if (connected_) async::spawn(reactor_, ask_for_lock(), "asking systemd-logind for a lock");
}

void Logind::release_lock() {
  wants_lock_ = false;
  lock_.release();
}

/// The old lock goes when the new one is there: there is no moment without.
asio::awaitable<void> Logind::ask_for_lock() {
  if (bus_ == nullptr || std::exchange(asking_, true)) co_return;
  Result<InhibitorLock> taken = fail("");
  auto request = bus_->method({login1, login1_path, login1_manager, "Inhibit"});
  if (request) {
    static_cast<void>(fill(*request, {"shutdown", "evictd", "Pods get their time to end", "delay"}));
    const auto answer = co_await bus_->call(*std::move(request));
    if (answer)
      taken = read_lock(*answer);
    else
      taken = std::unexpected(answer.error());
  }
  asking_ = false;
  if (taken && wants_lock_) {
    lock_.release();
    lock_ = *std::move(taken);
    lock_.store();
    lock_error_.clear();
  } else if (!taken) {
    if (connected_ && lock_error_.empty()) timer_.cancel();  // session() does not know yet that it is to ask again
    lock_error_ = "systemd-logind gives no lock: " + taken.error().message;
  }
  report();
}

asio::awaitable<void> Logind::sleep(core::Duration duration) {
  timer_.expires_after(duration);
  co_await async::wait(timer_);
}

LogindStatus Logind::status() const {
  LogindStatus status{.connected = connected_, .holds_lock = lock_.held(), .inhibit_delay = inhibit_delay_};
  status.error = !connected_ ? connection_error_ : !lock_error_.empty() ? lock_error_ : delay_error_;
  return status;
}

void Logind::report() {
  const auto now = status();
  if (now.error == reported_ || stopping_) return;
  reported_ = now.error;
  listener_.logind_changed(now);
}

}  // namespace evictd::host
