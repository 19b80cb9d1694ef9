#include "admission/allocation/cpu_options.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"

namespace evictd::admission::cpu_options_test {

using fixture::error_of;
using fixture::value_of;

TEST_CASE("truth values are those of Go") {
  for (const auto* yes : {"1", "t", "T", "true", "TRUE", "True"}) CHECK(value_of(parse_option("x", yes)));
  for (const auto* no : {"0", "f", "F", "false", "FALSE", "False"}) CHECK_FALSE(value_of(parse_option("x", no)));
  for (const auto* neither : {"", "yes", "tRUE", "2"})
    CHECK(error_of(parse_option("x", neither)) ==
          "bad value for option \"x\": \"" + std::string(neither) + "\" is neither true nor false");
}

TEST_CASE("every option of the static policy is known") {
  CHECK(value_of(parse_cpu_options({})) == CpuOptions{});
  CHECK(value_of(parse_cpu_options({{"full-pcpus-only", "true"},
                                    {"distribute-cpus-across-numa", "true"},
                                    {"align-by-socket", "true"},
                                    {"strict-cpu-reservation", "true"}})) ==
        CpuOptions{.full_pcpus_only = true,
                   .distribute_cpus_across_numa = true,
                   .align_by_socket = true,
                   .strict_cpu_reservation = true});
  CHECK(value_of(parse_cpu_options({{"distribute-cpus-across-cores", "true"}})).distribute_cpus_across_cores);
  CHECK(value_of(parse_cpu_options({{"prefer-align-cpus-by-uncorecache", "1"}})).prefer_align_cpus_by_uncorecache);
  CHECK(value_of(parse_cpu_options({{"full-pcpus-only", "false"}})) == CpuOptions{});
}

TEST_CASE("wrong options are told as the kubelet tells them") {
  CHECK(error_of(parse_cpu_options({{"full-cpus", "true"}})) == "unknown CPU Manager Policy option: \"full-cpus\"");
  CHECK(error_of(parse_cpu_options({{"full-pcpus-only", "yes"}})) ==
        "bad value for option \"full-pcpus-only\": \"yes\" is neither true nor false");
  const std::vector<std::pair<std::string, std::string>> exclusive{
      {"full-pcpus-only", "distribute-cpus-across-cores"},
      {"distribute-cpus-across-numa", "distribute-cpus-across-cores"},
      {"prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"},
      {"prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"}};
  for (const auto& [one, other] : exclusive)
    CHECK(error_of(parse_cpu_options({{one, "true"}, {other, "true"}})) ==
          "static policy options " + one + " and " + other + " can not be used at the same time");
}

}  // namespace evictd::admission::cpu_options_test
