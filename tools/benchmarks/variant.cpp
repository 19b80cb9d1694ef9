#include "benchmarks/variant.hpp"

#include <string>
#include <utility>

namespace bench {

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
  options.kill = variant == Variant::cri ? "mode: cri" : "mode: fast";
  if (variant == Variant::timer) options.notifier = "disable: [memcg, oom, files, sampler, psi]";
  return options;
}

}  // namespace bench
