#include "benchmarks/variant.hpp"

#include <string>
#include <utility>

namespace bench {

std::string_view name(Variant variant) {
  switch (variant) {
    case Variant::fast: return "evictd fast";
    case Variant::cri: return "evictd cri";
    case Variant::timer: return "evictd timer";
    case Variant::sampler: return "evictd sampler";
    case Variant::fence: return "evictd fence";
    case Variant::hook: return "evictd hook";
    case Variant::hook_hangs: return "evictd hook-hangs";
    case Variant::floor: return "floor";
  }
  return "";
}

bool is_of_v2(Variant variant) { return variant == Variant::sampler || variant == Variant::fence; }

std::string_view short_name(Variant variant) {
  const auto whole = name(variant);
  return whole.substr(whole.find_last_of(' ') + 1);  // of "floor" all
}

std::optional<Variant> variant_named(std::string_view short_name) {
  using enum Variant;
  for (const auto variant : {fast, cri, timer, sampler, fence, hook, hook_hangs, floor})
    if (bench::short_name(variant) == short_name) return variant;
  return std::nullopt;
}

testbed::Agent::Options agent_options(Variant variant, std::string thresholds) {
  testbed::Agent::Options options{.thresholds = std::move(thresholds)};
  options.sections = variant == Variant::cri ? "kill: {mode: cri}\n" : "kill: {mode: fast}\n";
  if (variant == Variant::timer) options.notifier = "disable: [memcg, oom, files, sampler, psi], v2: sampler";
  if (is_of_v2(variant)) options.notifier = "v2: " + std::string(short_name(variant));
  return options;
}

}  // namespace bench
