#pragma once
#include <boost/json/fwd.hpp>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::simulate {

/// How the node will treat the pod: QoS class, criticality, priority, sums of requests and limits, and every
/// container's oom_score_adj on a node of `memory_capacity` bytes, init containers last.
[[nodiscard]] boost::json::object inspect(const core::Pod& pod, std::int64_t memory_capacity);

/// The same of a document in YAML or JSON: an object for one pod, a list for a list or several documents. The error
/// names `name`, line and key.
[[nodiscard]] Result<boost::json::value> inspect_document(const std::string& text, const std::string& name,
                                                          std::int64_t memory_capacity);

}  // namespace evictd::simulate
