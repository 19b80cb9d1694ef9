#pragma once
#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <string>

namespace bench::soak {

struct Options {
  std::chrono::milliseconds duration = std::chrono::hours{1};
  std::uint64_t seed = 1;  ///< of every random choice
  int pods = 30;           ///< that stand on the node, give or take a fifth
  int subscribers = 100;
};

/// Of all figures, for people.
[[nodiscard]] std::string text_of(const boost::json::object& figures, const Options& options);

}  // namespace bench::soak
