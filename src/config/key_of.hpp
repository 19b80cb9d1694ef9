#pragma once
#include <string>
#include <string_view>

#include "config/agent_configuration.hpp"
#include "config/agent_keys.hpp"
#include "config/fields.hpp"
#include "config/key_kinds.hpp"

// A key from the member that it fills and the kind of what it holds, for those who list the keys of a section.

namespace evictd::config {

/// Of a section.
template <auto Section, auto Member, class Kind>
[[nodiscard]] AgentKey key(std::string_view path, const Kind& kind, std::string_view meaning) {
  return {.path = std::string(path),
          .type = kind.type(),
          .meaning = std::string(meaning),
          .read = [kind](const Value& value,
                         AgentConfiguration& target) { return store(kind.read(value), target.*Section.*Member); },
          .print = [kind](const AgentConfiguration& source) { return kind.print(source.*Section.*Member); }};
}

/// Of the document itself.
template <auto Member, class Kind>
[[nodiscard]] AgentKey key(std::string_view path, const Kind& kind, std::string_view meaning) {
  return {.path = std::string(path),
          .type = kind.type(),
          .meaning = std::string(meaning),
          .read = [kind](const Value& value,
                         AgentConfiguration& target) { return store(kind.read(value), target.*Member); },
          .print = [kind](const AgentConfiguration& source) { return kind.print(source.*Member); }};
}

/// Who does something that a kubelet does where one runs.
[[nodiscard]] inline kinds::OneOf<InKubeletsPlace> in_kubelets_place() {
  using enum InKubeletsPlace;
  return {{{"auto", Auto}, {"on", On}, {"off", Off}}};
}

}  // namespace evictd::config
