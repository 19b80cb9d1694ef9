#pragma once
#include <string>
#include <vector>

#include "wake/wakes.hpp"

namespace evictd::test {

/// Notes how sources do.
struct HeardSources : wake::SourceListener {
  std::vector<std::string> failures;    // why
  std::vector<std::string> failed;      // "source: why"
  std::vector<std::string> recoveries;  // what

  void source_degraded(const std::string& source, const Error& error) override {
    failures.push_back(error.message);
    failed.push_back(source + ": " + error.message);
  }
  void source_recovered(const std::string& /*source*/, const std::string& what) override { recoveries.push_back(what); }
};

}  // namespace evictd::test
