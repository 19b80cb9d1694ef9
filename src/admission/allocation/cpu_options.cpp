#include "admission/allocation/cpu_options.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace evictd::admission {
namespace {

using Flag = bool CpuOptions::*;

constexpr std::array<std::pair<std::string_view, Flag>, 6> flags{{
    {"full-pcpus-only", &CpuOptions::full_pcpus_only},
    {"distribute-cpus-across-numa", &CpuOptions::distribute_cpus_across_numa},
    {"distribute-cpus-across-cores", &CpuOptions::distribute_cpus_across_cores},
    {"align-by-socket", &CpuOptions::align_by_socket},
    {"strict-cpu-reservation", &CpuOptions::strict_cpu_reservation},
    {"prefer-align-cpus-by-uncorecache", &CpuOptions::prefer_align_cpus_by_uncorecache},
}};

constexpr std::array<std::pair<Flag, Flag>, 4> exclusive{{
    {&CpuOptions::full_pcpus_only, &CpuOptions::distribute_cpus_across_cores},
    {&CpuOptions::distribute_cpus_across_numa, &CpuOptions::distribute_cpus_across_cores},
    {&CpuOptions::prefer_align_cpus_by_uncorecache, &CpuOptions::distribute_cpus_across_cores},
    {&CpuOptions::prefer_align_cpus_by_uncorecache, &CpuOptions::distribute_cpus_across_numa},
}};

std::string name_of(Flag flag) {
  return std::string(std::ranges::find(flags, flag, &std::pair<std::string_view, Flag>::second)->first);
}

}  // namespace

Result<CpuOptions> parse_cpu_options(const PolicyOptions& options) {
  CpuOptions result;
  for (const auto& [name, value] : options) {
    const auto flag = std::ranges::find(flags, name, &std::pair<std::string_view, Flag>::first);
    if (flag == flags.end()) return fail("unknown CPU Manager Policy option: \"" + name + "\"");
    const auto on = parse_option(name, value);
    if (!on) return std::unexpected(on.error());
    result.*(flag->second) = *on;
  }
  for (const auto& [one, other] : exclusive)
    if (result.*one && result.*other)
      return fail("static policy options " + name_of(one) + " and " + name_of(other) +
                  " can not be used at the same time");
  return result;
}

}  // namespace evictd::admission
