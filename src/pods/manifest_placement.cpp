#include "pods/manifest_placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "config/fields.hpp"
#include "core/node_selector.hpp"

namespace evictd::pods {
namespace {

using config::Field;
using config::into;
using config::read_fields;
using config::read_list;
using config::UnknownKeys;
using config::Value;

/// One of a few words; any other is an error that names them, and is kept for where that is forgiven: a requirement by
/// an operator that nobody knows holds for no node.
template <std::size_t N>
Result<void> read_word(const Value& value, const std::array<std::string_view, N>& words, std::string& target) {
  if (auto result = config::read(value, target); !result) return result;
  if (std::ranges::find(words, target) != words.end()) return {};
  return std::unexpected(value.error(fmt::format("\"{}\" is none of {}", target, fmt::join(words, ", "))));
}

Result<void> read_operator(const Value& value, std::string& target) {
  static constexpr std::array<std::string_view, 6> operators{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
  return read_word(value, operators, target);
}

Result<void> read_requirement(const Value& value, core::NodeSelectorRequirement& target) {
  using R = core::NodeSelectorRequirement;
  static constexpr Field<R> fields[]{
      {"key", into<&R::key>}, {"operator", into<&R::op, read_operator>}, {"values", into<&R::values>}};
  if (auto result = read_fields(value, target, fields, UnknownKeys::pass_over); !result) return result;
  if (target.op.empty()) return std::unexpected(value.error("operator is missing"));
  return {};
}

using Requirements = std::vector<core::NodeSelectorRequirement>;

Result<void> read_requirements(const Value& value, Requirements& target) {
  return read_list<read_requirement>(value, target);
}

Result<void> read_term(const Value& value, core::NodeSelectorTerm& target) {
  using T = core::NodeSelectorTerm;
  static constexpr Field<T> fields[]{{"matchExpressions", into<&T::match_expressions, read_requirements>},
                                     {"matchFields", into<&T::match_fields, read_requirements>}};
  // A term that is there without saying anything still counts: it holds for no node.
  return value.is_null() ? Result<void>{} : read_fields(value, target, fields, UnknownKeys::pass_over);
}

/// Affinity, looked at from outside.
struct Affinity {
  std::optional<core::NodeSelector> required{};
};

Result<void> read_terms(const Value& value, core::NodeSelector& target) { return read_list<read_term>(value, target); }

Result<void> read_required(const Value& value, Affinity& target) {
  using S = core::NodeSelector;
  static constexpr Field<S> fields[]{{"nodeSelectorTerms", read_terms}};
  S required;
  if (auto result = read_fields(value, required, fields, UnknownKeys::pass_over); !result) return result;
  target.required = std::move(required);
  return {};
}

Result<void> read_node_affinity(const Value& value, Affinity& target) {
  static constexpr Field<Affinity> fields[]{{"requiredDuringSchedulingIgnoredDuringExecution", read_required}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

Result<void> read_sysctl(const Value& value, std::string& name) {
  static constexpr Field<std::string> fields[]{{"name", config::read_one<std::string>}};
  if (auto result = read_fields(value, name, fields, UnknownKeys::pass_over); !result) return result;
  if (name.empty()) return std::unexpected(value.error("name is missing"));
  return {};
}

Result<void> read_app_armor(const Value& value, std::optional<core::AppArmorProfile>& target) {
  using A = core::AppArmorProfile;
  static constexpr Field<A> fields[]{{"type", into<&A::type>}, {"localhostProfile", into<&A::localhost_profile>}};
  A profile;
  if (auto result = read_fields(value, profile, fields, UnknownKeys::pass_over); !result) return result;
  target = std::move(profile);
  return {};
}

Result<void> read_port_number(const Value& value, std::int32_t& target) {
  constexpr std::int64_t highest = std::numeric_limits<std::uint16_t>::max();
  const auto number = value.integer(0, highest);
  if (!number) return std::unexpected(number.error());
  target = static_cast<std::int32_t>(*number);
  return {};
}

Result<void> read_protocol(const Value& value, std::string& target) {
  static constexpr std::array<std::string_view, 3> protocols{"TCP", "UDP", "SCTP"};
  return read_word(value, protocols, target);
}

struct Port {
  core::HostPort host{};
  std::int32_t container = 0;
};

Result<void> read_port(const Value& value, Port& target) {
  static constexpr auto host_ip = [](const Value& ip, Port& port) { return config::read(ip, port.host.ip); };
  static constexpr auto host_port = [](const Value& number, Port& port) {
    return read_port_number(number, port.host.port);
  };
  static constexpr auto protocol = [](const Value& word, Port& port) {
    return read_protocol(word, port.host.protocol);
  };
  static constexpr Field<Port> fields[]{{"containerPort", into<&Port::container, read_port_number>},
                                        {"hostPort", host_port},
                                        {"hostIP", host_ip},
                                        {"protocol", protocol}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

}  // namespace

Result<void> read_affinity(const Value& value, std::optional<core::NodeSelector>& target) {
  static constexpr Field<Affinity> fields[]{{"nodeAffinity", read_node_affinity}};
  Affinity affinity;
  if (auto result = read_fields(value, affinity, fields, UnknownKeys::pass_over); !result) return result;
  target = std::move(affinity.required);
  return {};
}

Result<void> read_os(const Value& value, std::string& name) {
  static constexpr Field<std::string> fields[]{{"name", config::read_one<std::string>}};
  return read_fields(value, name, fields, UnknownKeys::pass_over);
}

Result<void> read_pod_security(const Value& value, core::Pod& target) {
  using P = core::Pod;
  static constexpr Field<P> fields[]{{"sysctls", into<&P::sysctls, read_list<read_sysctl, std::string>>},
                                     {"supplementalGroupsPolicy", into<&P::supplemental_groups_policy>},
                                     {"appArmorProfile", into<&P::app_armor_profile, read_app_armor>}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

Result<void> read_container_security(const Value& value, core::Container& target) {
  using C = core::Container;
  static constexpr Field<C> fields[]{{"appArmorProfile", into<&C::app_armor_profile, read_app_armor>}};
  return read_fields(value, target, fields, UnknownKeys::pass_over);
}

Result<void> read_host_ports(const Value& value, Network network, std::vector<core::HostPort>& target) {
  std::vector<Port> ports;
  if (auto result = read_list<read_port>(value, ports); !result) return result;
  target.clear();
  for (auto& port : ports) {
    if (network == Network::hosts && port.host.port == 0) port.host.port = port.container;
    if (port.host.port > 0) target.push_back(std::move(port.host));
  }
  return {};
}

void take_placement(core::Pod& target, const core::Pod& spec) {
  target.node_name = spec.node_name;
  target.node_selector = spec.node_selector;
  target.required_node_affinity = spec.required_node_affinity;
  target.os_name = spec.os_name;
  target.host_network = spec.host_network;
  target.host_ipc = spec.host_ipc;
  target.host_users = spec.host_users;
  target.sysctls = spec.sysctls;
  target.supplemental_groups_policy = spec.supplemental_groups_policy;
  target.app_armor_profile = spec.app_armor_profile;
}

}  // namespace evictd::pods
