#include "benchmarks/variant.hpp"

#include <algorithm>
#include <utility>

#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"

namespace bench {

namespace {

/// "fast", …, "floor", as the command line has them.
std::string_view short_name(Variant variant) {
  const auto whole = name(variant);
  return whole.substr(whole.find_last_of(' ') + 1);  // of "floor" all
}

/// Whether cgroup v1 knows no such difference.
bool is_of_v2(Variant variant) { return variant == Variant::sampler || variant == Variant::fence; }

}  // namespace

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

std::vector<Variant> variants_named(const std::vector<std::string>& short_names) {
  using enum Variant;
  std::vector<Variant> variants;
  for (const auto& wanted : short_names)
    for (const auto variant : {fast, cri, timer, sampler, fence, hook, hook_hangs, floor})
      if (short_name(variant) == wanted) variants.push_back(variant);
  if (!testbed::cgroup_host().v2 && std::ranges::any_of(variants, is_of_v2))
    testbed::fail("sampler and fence are cgroup v2's, and this machine has its memory on v1: see tools/vm/run");
  return variants;
}

testbed::Agent::Options agent_options(Variant variant, std::string thresholds) {
  testbed::Agent::Options options{.thresholds = std::move(thresholds)};
  options.sections = variant == Variant::cri ? "kill: {mode: cri}\n" : "kill: {mode: fast}\n";
  if (variant == Variant::timer) options.notifier = "disable: [memcg, oom, files, sampler, psi], v2: sampler";
  if (is_of_v2(variant)) options.notifier = "v2: " + std::string(short_name(variant));
  return options;
}

}  // namespace bench
