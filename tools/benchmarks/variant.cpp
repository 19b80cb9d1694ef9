#include "benchmarks/variant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"

namespace bench {

namespace {

/// As the command line has them, in the order of Variant.
constexpr std::array<std::string_view, 8> short_names{"fast",  "cri",  "timer",      "sampler",
                                                      "fence", "hook", "hook-hangs", "floor"};

/// Whether cgroup v1 knows no such difference.
bool is_of_v2(Variant variant) { return variant == Variant::sampler || variant == Variant::fence; }

}  // namespace

std::string name(Variant variant) {
  const auto short_name = std::string(short_names.at(static_cast<std::size_t>(variant)));
  return variant == Variant::floor ? short_name : "evictd " + short_name;
}

std::vector<Variant> variants_named(const std::vector<std::string>& names) {
  std::vector<Variant> variants;
  for (const auto& name : names)
    variants.push_back(static_cast<Variant>(std::ranges::find(short_names, name) - short_names.begin()));
  if (!testbed::cgroup_host().v2 && std::ranges::any_of(variants, is_of_v2))
    testbed::fail("sampler and fence are cgroup v2's, and this machine has its memory on v1: see tools/vm/run");
  return variants;
}

testbed::Agent::Options agent_options(Variant variant, std::string thresholds) {
  testbed::Agent::Options options{.thresholds = std::move(thresholds)};
  options.sections = variant == Variant::cri ? "kill: {mode: cri}\n" : "kill: {mode: fast}\n";
  if (variant == Variant::timer) options.notifier = "disable: [memcg, oom, files, sampler, psi], v2: sampler";
  if (is_of_v2(variant)) options.notifier = fmt::format("v2: {}", short_names.at(static_cast<std::size_t>(variant)));
  return options;
}

}  // namespace bench
