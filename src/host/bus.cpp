#include "host/bus.hpp"

#include <fcntl.h>
#include <poll.h>
#include <systemd/sd-bus.h>

#include <algorithm>
#include <boost/asio/async_result.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <list>
#include <utility>

namespace asio = boost::asio;

namespace evictd::host {
namespace {

using Answer = std::move_only_function<void(Result<BusMessage>)>;

BusMessage shared(sd_bus_message* message) { return {message, sd_bus_message_unref}; }

/// What the other side says went wrong, or sd-bus in its stead.
std::unexpected<Error> error_in(sd_bus_message* message) {
  const auto* error = sd_bus_message_get_error(message);
  const std::string name = error->name == nullptr ? "error" : error->name;
  return fail(error->message == nullptr || *error->message == '\0' ? name : name + ": " + error->message);
}

}  // namespace

std::unexpected<Error> bus_error(int result, const std::string& what) {
  return fail(what + ": " + std::strerror(-result));
}

struct Bus::Connection : std::enable_shared_from_this<Connection> {
  explicit Connection(asio::any_io_executor executor)
      : reactor{std::move(executor)}, descriptor{reactor}, timer{reactor} {}

  /// A call on its way.
  struct Call {
    Connection* connection;
    sd_bus_slot* slot = nullptr;
    Answer answer;
  };
  struct Match {
    sd_bus_slot* slot = nullptr;
    std::function<void(sd_bus_message*)> on_signal;
  };

  Result<void> open();
  void close();
  void lose(const Error& error);
  void end_calls(const Error& error);
  void turn();
  void process();
  void wait();
  void send(const BusMessage& request, core::Duration timeout, Answer answer);

  static int on_answer(sd_bus_message* message, void* userdata, sd_bus_error*);
  static int on_signal(sd_bus_message* message, void* userdata, sd_bus_error*);

  asio::any_io_executor reactor;
  sd_bus* bus = nullptr;
  asio::posix::stream_descriptor descriptor;  // a duplicate: sd-bus closes its own whenever it likes
  asio::steady_timer timer;
  std::move_only_function<void(const Error&)> on_lost;
  std::list<Call> calls;
  std::list<Match> matches;
  bool turning = false;  // a turn is posted
  bool waiting_to_read = false;
  bool waiting_to_write = false;
};

Result<void> Bus::Connection::open() {
  if (const int result = sd_bus_open_system(&bus); result < 0) return bus_error(result, "no system bus");
  const int file = sd_bus_get_fd(bus);
  if (file < 0) return bus_error(file, "the system bus");
  const int duplicate = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return bus_error(-errno, "the system bus");
  boost::system::error_code error;
  descriptor.assign(duplicate, error);
  if (error) {
    ::close(duplicate);
    return fail("the system bus: " + error.message());
  }
  turn();
  return {};
}

void Bus::Connection::close() {
  on_lost = nullptr;
  boost::system::error_code ignored;
  descriptor.close(ignored);
  timer.cancel();
  end_calls({"the connection to the system bus was closed"});
  for (auto& match : matches) sd_bus_slot_unref(match.slot);
  matches.clear();
  bus = sd_bus_close_unref(bus);
}

void Bus::Connection::end_calls(const Error& error) {
  for (auto& call : calls) {
    sd_bus_slot_unref(call.slot);
    call.answer(std::unexpected(error));
  }
  calls.clear();
}

void Bus::Connection::lose(const Error& error) {
  end_calls(error);
  if (!on_lost) return;
  asio::post(reactor, [told = std::exchange(on_lost, nullptr), error]() mutable { told(error); });
}

/// Soon: what sd-bus calls back from must not call sd-bus again.
void Bus::Connection::turn() {
  if (std::exchange(turning, true)) return;
  asio::post(reactor, [self = shared_from_this()] {
    self->turning = false;
    self->process();
  });
}

void Bus::Connection::process() {
  constexpr int most_at_once = 16;  // then the reactor's other work goes on
  for (int count = 0; bus != nullptr; ++count) {
    if (count == most_at_once) return turn();
    const int result = sd_bus_process(bus, nullptr);
    if (result < 0) return lose(bus_error(result, "the connection to the system bus is gone").error());
    if (result == 0) return wait();
  }
}

void Bus::Connection::wait() {
  const int events = sd_bus_get_events(bus);
  std::uint64_t time = UINT64_MAX;  // µs of CLOCK_MONOTONIC
  const int timed = sd_bus_get_timeout(bus, &time);
  if (events < 0 || timed < 0)
    return lose(bus_error(std::min(events, timed), "the connection to the system bus").error());
  const auto ready = [self = shared_from_this()](bool Connection::* flag) {
    return [self, flag](boost::system::error_code error) {
      (*self).*flag = false;
      if (!error) self->process();
    };
  };
  if ((events & POLLIN) != 0 && !std::exchange(waiting_to_read, true))
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read, ready(&Connection::waiting_to_read));
  if ((events & POLLOUT) != 0 && !std::exchange(waiting_to_write, true))
    descriptor.async_wait(asio::posix::stream_descriptor::wait_write, ready(&Connection::waiting_to_write));
  if (time == UINT64_MAX) {
    timer.cancel();
    return;
  }
  timer.expires_at(asio::steady_timer::time_point{std::chrono::microseconds{time}});
  timer.async_wait([self = shared_from_this()](boost::system::error_code error) {
    if (!error) self->process();
  });
}

void Bus::Connection::send(const BusMessage& request, core::Duration timeout, Answer answer) {
  if (bus == nullptr) return answer(fail("the connection to the system bus was closed"));
  auto& call = calls.emplace_back(Call{.connection = this, .answer = std::move(answer)});
  const auto time = static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::microseconds>(timeout).count());
  const int result = sd_bus_call_async(bus, &call.slot, request.get(), &Connection::on_answer, &call, time);
  if (result < 0) {
    call.answer(bus_error(result, "a call on the system bus"));
    calls.pop_back();
  }
  turn();
}

int Bus::Connection::on_answer(sd_bus_message* message, void* userdata, sd_bus_error*) {
  auto& call = *static_cast<Call*>(userdata);
  auto& calls = call.connection->calls;
  if (sd_bus_message_is_method_error(message, nullptr) > 0)
    call.answer(error_in(message));
  else
    call.answer(shared(sd_bus_message_ref(message)));
  sd_bus_slot_unref(call.slot);
  calls.remove_if([&](const Call& known) { return &known == &call; });
  return 0;
}

int Bus::Connection::on_signal(sd_bus_message* message, void* userdata, sd_bus_error*) {
  static_cast<Match*>(userdata)->on_signal(message);
  return 0;
}

Result<std::unique_ptr<Bus>> Bus::connect(asio::any_io_executor reactor,
                                          std::move_only_function<void(const Error&)> lost) {
  auto connection = std::make_shared<Connection>(std::move(reactor));
  connection->on_lost = std::move(lost);
  std::unique_ptr<Bus> bus{new Bus(connection)};  // which closes what was opened
  if (const auto opened = connection->open(); !opened) return std::unexpected(opened.error());
  return bus;
}

Bus::~Bus() { connection_->close(); }

Result<BusMessage> Bus::method(const BusMethod& method) const {
  sd_bus_message* message = nullptr;
  const int result = sd_bus_message_new_method_call(connection_->bus, &message, method.destination, method.path,
                                                    method.interface, method.member);
  if (result < 0) return bus_error(result, method.member);
  return shared(message);
}

asio::awaitable<Result<BusMessage>> Bus::call(BusMessage request, core::Duration timeout) {
  return asio::async_initiate<const asio::use_awaitable_t<>, void(Result<BusMessage>)>(
      [connection = connection_, timeout](auto handler, BusMessage message) {
        auto go_on = [handler = std::move(handler), reactor = connection->reactor](Result<BusMessage> answer) mutable {
          // Never from within sd-bus, nor from within the call that closes the connection.
          asio::post(reactor, [handler = std::move(handler), answer = std::move(answer)]() mutable {
            handler(std::move(answer));
          });
        };
        connection->send(message, timeout, std::move(go_on));
      },
      asio::use_awaitable, std::move(request));
}

Result<void> Bus::match(const std::string& rule, std::function<void(sd_bus_message*)> on_signal) {
  auto& match = connection_->matches.emplace_back(Connection::Match{.on_signal = std::move(on_signal)});
  const int result =
      sd_bus_add_match_async(connection_->bus, &match.slot, rule.c_str(), &Connection::on_signal, nullptr, &match);
  connection_->turn();
  if (result >= 0) return {};
  connection_->matches.pop_back();
  return bus_error(result, "a match on the system bus");
}

}  // namespace evictd::host
