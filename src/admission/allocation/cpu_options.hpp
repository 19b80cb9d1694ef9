#pragma once
#include "admission/allocation/allocation_settings.hpp"
#include "core/error.hpp"

namespace evictd::admission {

/// What cpuManagerPolicyOptions can ask of the static policy.
struct CpuOptions {
  bool full_pcpus_only = false;               ///< whole cores, or the pod is rejected
  bool distribute_cpus_across_numa = false;   ///< equal parts where one node is not enough
  bool distribute_cpus_across_cores = false;  ///< threads of different cores rather than of one
  bool align_by_socket = false;               ///< NUMA nodes of one socket count as one
  bool strict_cpu_reservation = false;        ///< no other pod runs on reserved CPUs
  bool prefer_align_cpus_by_uncorecache = false;

  friend bool operator==(const CpuOptions&, const CpuOptions&) = default;
};

/// Unknown options, values that are no truth values and pairs that exclude each other are errors. Whether the kubelet
/// has an option behind a feature gate makes no difference here. (kubelet: NewStaticPolicyOptions)
[[nodiscard]] Result<CpuOptions> parse_cpu_options(const PolicyOptions& options);

}  // namespace evictd::admission
