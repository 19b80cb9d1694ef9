#pragma once
#include <map>
#include <string>
#include <string_view>

#include "core/pod.hpp"

namespace evictd::admission {

using Labels = std::map<std::string, std::string, std::less<>>;

/// Whether the node is one that the pod asks for: its nodeSelector and what its node affinity requires. A term with a
/// requirement that makes no sense, such as Gt of a word, holds for no node. A node without a name passes requirements
/// on fields, of which the name is the only one. (kubelet: GetRequiredNodeAffinity(pod).Match)
[[nodiscard]] bool matches_node(const core::Pod& pod, std::string_view node_name, const Labels& labels);

}  // namespace evictd::admission
