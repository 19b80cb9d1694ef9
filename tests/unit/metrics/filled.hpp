#pragma once
#include <evictd.pb.h>

#include <string>
#include <vector>

#include "metrics/exposition.hpp"

namespace evictd::test {

/// An event of each kind that is counted, about a pod named "someones-secret".
[[nodiscard]] std::vector<v1::Event> every_event();

/// A node that has everything there is to tell of.
[[nodiscard]] metrics::Snapshot full_snapshot();

/// The text of an exposition that was told all of it.
[[nodiscard]] std::string filled_text();

}  // namespace evictd::test
