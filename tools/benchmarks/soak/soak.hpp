#pragma once
#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

#include "benchmarks/report.hpp"

namespace bench::soak {

struct Options {
  std::chrono::milliseconds duration = std::chrono::hours{1};
  std::uint64_t seed = 1;  ///< of every random choice
  int pods = 30;           ///< that stand on the node, give or take a fifth
  int subscribers = 100;
};

/// Runs evictd on a real containerd for so long, with pods that come and go, hogs, a containerd that is killed and
/// subscribers that come and go, and looks at what has to hold. Ends early when it is asked to.
[[nodiscard]] Report run(const Options& options, const std::stop_token& asked);

/// Of all figures, for people.
[[nodiscard]] std::string text_of(const boost::json::object& figures, const Options& options);

}  // namespace bench::soak
