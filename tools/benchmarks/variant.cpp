#include "benchmarks/variant.hpp"

#include <utility>

#include "testbed/programs.hpp"

namespace bench {

namespace {

/// Not in an evictd from before the key, which EVICTD_PROGRAM may name to compare with: all it has is CRI.
bool knows_kill_mode() {
  static const bool knows =
      testbed::run({testbed::evictd_program(), "check", "-o", "yaml"}).find("\nkill:") != std::string::npos;
  return knows;
}

}  // namespace

std::string_view name(Variant variant) {
  switch (variant) {
    case Variant::fast: return "evictd fast";
    case Variant::cri: return "evictd cri";
    case Variant::timer: return "evictd timer";
    case Variant::floor: return "floor";
  }
  return "";
}

testbed::Agent::Options agent_options(Variant variant, std::string thresholds) {
  testbed::Agent::Options options{.thresholds = std::move(thresholds)};
  if (knows_kill_mode()) options.kill = variant == Variant::cri ? "mode: cri" : "mode: fast";
  if (variant == Variant::timer) options.notifier = "memcg: false, sampler: off, psi: false";
  return options;
}

}  // namespace bench
