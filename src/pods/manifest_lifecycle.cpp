#include "pods/manifest_lifecycle.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/fields.hpp"

namespace evictd::pods {
namespace {

using config::Field;
using config::into;
using config::read_fields;
using config::read_list;
using config::UnknownKeys;
using config::Value;

Result<void> read_exec(const Value& value, core::ExecHook& target) {
  using E = core::ExecHook;
  static constexpr Field<E> fields[]{{"command", into<&E::command>}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

Result<void> read_header(const Value& value, core::HttpHeader& target) {
  using H = core::HttpHeader;
  static constexpr Field<H> fields[]{{"name", into<&H::name>}, {"value", into<&H::value>}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

Result<void> read_scheme(const Value& value, bool& https) {
  const auto scheme = value.text();
  if (!scheme) return std::unexpected(scheme.error());
  https =
      std::ranges::equal(*scheme, std::string_view("https"), {}, [](char c) { return static_cast<char>(c | 0x20); });
  return {};
}

Result<void> read_http_get(const Value& value, core::HttpGetHook& target) {
  using G = core::HttpGetHook;
  static constexpr Field<G> fields[]{{"scheme", into<&G::https, read_scheme>},
                                     {"host", into<&G::host>},
                                     {"port", into<&G::port>},
                                     {"path", into<&G::path>},
                                     {"httpHeaders", into<&G::headers, read_list<read_header, core::HttpHeader>>}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

/// Longer than any grace period is as good as for ever, and sums of a few still fit into a Duration.
Result<void> read_sleep_time(const Value& value, std::chrono::seconds& target) {
  constexpr std::int64_t longest = 1'000'000'000;
  const auto number = value.integer(0, std::numeric_limits<std::int64_t>::max());
  if (!number) return std::unexpected(number.error());
  target = std::chrono::seconds{std::min(*number, longest)};
  return {};
}

Result<void> read_sleep(const Value& value, core::SleepHook& target) {
  using S = core::SleepHook;
  static constexpr Field<S> fields[]{{"seconds", into<&S::time, read_sleep_time>}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

/// The handlers that are there.
struct Handlers {
  std::optional<core::ExecHook> exec{};
  std::optional<core::HttpGetHook> http_get{};
  std::optional<core::SleepHook> sleep{};
};

template <auto Member, auto Read>
Result<void> read_handler(const Value& value, Handlers& target) {
  return config::read_optional<Read>(value, target.*Member);
}

Result<void> read_pre_stop(const Value& value, std::optional<core::PreStop>& target) {
  static constexpr Field<Handlers> fields[]{{"exec", read_handler<&Handlers::exec, read_exec>},
                                            {"httpGet", read_handler<&Handlers::http_get, read_http_get>},
                                            {"sleep", read_handler<&Handlers::sleep, read_sleep>}};
  Handlers handlers;
  if (auto result = read_fields(value, handlers, fields, UnknownKeys::pass_over); !result) return result;
  if (handlers.exec && !handlers.exec->command.empty())
    target = *std::move(handlers.exec);
  else if (handlers.http_get)
    target = *std::move(handlers.http_get);
  else if (handlers.sleep)
    target = *handlers.sleep;
  return {};
}

struct NamedPort {
  std::string name{};
  std::string number{};
};

Result<void> read_named_port(const Value& value, NamedPort& target) {
  using N = NamedPort;
  static constexpr Field<N> fields[]{{"name", into<&N::name>}, {"containerPort", into<&N::number>}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

Result<void> read_named_ports(const Value& value, std::vector<NamedPort>& target) {
  return read_list<read_named_port>(value, target);
}

}  // namespace

Result<void> read_lifecycle(const Value& value, std::optional<core::PreStop>& target) {
  using Hook = std::optional<core::PreStop>;
  static constexpr Field<Hook> fields[]{{"preStop", read_pre_stop}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

Result<void> resolve_hook_port(const Value& value, core::Container& target) {
  auto* hook = target.pre_stop ? std::get_if<core::HttpGetHook>(&*target.pre_stop) : nullptr;
  if (hook == nullptr || hook->port.empty()) return {};
  static constexpr Field<std::vector<NamedPort>> fields[]{{"ports", read_named_ports}};
  std::vector<NamedPort> ports;
  if (auto result = read_fields(value, ports, fields, UnknownKeys::pass_over); !result) return result;
  const auto named = std::ranges::find(ports, hook->port, &NamedPort::name);
  if (named != ports.end()) hook->port = named->number;
  return {};
}

}  // namespace evictd::pods
