#pragma once
#include <string>
#include <vector>

namespace evictd::core {

/// What a node must be like: a condition on one of its labels or fields.
struct NodeSelectorRequirement {
  std::string key;
  std::string op;  ///< "In", "NotIn", "Exists", "DoesNotExist", "Gt" or "Lt"
  std::vector<std::string> values{};

  friend bool operator==(const NodeSelectorRequirement&, const NodeSelectorRequirement&) = default;
};

/// All of its requirements must hold. A term without any holds for no node.
struct NodeSelectorTerm {
  std::vector<NodeSelectorRequirement> match_expressions{};  ///< on labels
  std::vector<NodeSelectorRequirement> match_fields{};       ///< on fields; "metadata.name" is the only one there is

  friend bool operator==(const NodeSelectorTerm&, const NodeSelectorTerm&) = default;
};

/// One of the terms must hold.
using NodeSelector = std::vector<NodeSelectorTerm>;

}  // namespace evictd::core
