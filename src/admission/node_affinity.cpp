#include "admission/node_affinity.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/node_selector.hpp"
#include "core/number.hpp"

namespace evictd::admission {
namespace {

using core::NodeSelectorRequirement;
using core::NodeSelectorTerm;

/// As Go reads numbers.
std::optional<std::int64_t> label_number(std::string_view text) {
  return core::whole_number(text.substr(text.starts_with('+') ? 1 : 0));
}

/// Whether the requirement could hold for any label at all.
bool makes_sense(const NodeSelectorRequirement& requirement) {
  const auto& values = requirement.values;
  if (requirement.op == "In" || requirement.op == "NotIn") return !values.empty();
  if (requirement.op == "Exists" || requirement.op == "DoesNotExist") return values.empty();
  if (requirement.op == "Gt" || requirement.op == "Lt") return values.size() == 1 && label_number(values.front());
  return false;
}

/// For one that makes sense.
bool holds(const NodeSelectorRequirement& requirement, const Labels& labels) {
  const auto label = labels.find(requirement.key);
  const bool exists = label != labels.end();
  if (requirement.op == "Exists") return exists;
  if (requirement.op == "DoesNotExist") return !exists;
  if (!exists) return requirement.op == "NotIn";
  const auto& values = requirement.values;
  const bool is_in = std::ranges::find(values, label->second) != values.end();
  if (requirement.op == "In") return is_in;
  if (requirement.op == "NotIn") return !is_in;
  const auto number = label_number(label->second);
  if (!number) return false;
  const auto bound = *label_number(values.front());
  return requirement.op == "Gt" ? *number > bound : *number < bound;
}

/// Fields know In and NotIn with one value only.
bool field_makes_sense(const NodeSelectorRequirement& requirement) {
  return (requirement.op == "In" || requirement.op == "NotIn") && requirement.values.size() == 1;
}

/// A field that there is not reads as empty.
bool field_holds(const NodeSelectorRequirement& requirement, std::string_view node_name) {
  const auto value = requirement.key == "metadata.name" ? node_name : std::string_view{};
  return (requirement.values.front() == value) == (requirement.op == "In");
}

bool holds(const NodeSelectorTerm& term, std::string_view node_name, const Labels& labels) {
  if (term.match_expressions.empty() && term.match_fields.empty()) return false;
  if (!std::ranges::all_of(term.match_expressions, makes_sense)) return false;
  if (!std::ranges::all_of(term.match_fields, field_makes_sense)) return false;
  const auto label_holds = [&](const NodeSelectorRequirement& requirement) { return holds(requirement, labels); };
  if (!std::ranges::all_of(term.match_expressions, label_holds)) return false;
  return node_name.empty() || std::ranges::all_of(term.match_fields, [&](const NodeSelectorRequirement& requirement) {
           return field_holds(requirement, node_name);
         });
}

}  // namespace

bool matches_node(const core::Pod& pod, std::string_view node_name, const Labels& labels) {
  for (const auto& [key, value] : pod.node_selector) {
    const auto label = labels.find(key);
    if (label == labels.end() || label->second != value) return false;
  }
  if (!pod.required_node_affinity) return true;
  return std::ranges::any_of(*pod.required_node_affinity,
                             [&](const NodeSelectorTerm& term) { return holds(term, node_name, labels); });
}

}  // namespace evictd::admission
