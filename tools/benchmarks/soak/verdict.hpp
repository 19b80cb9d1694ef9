#pragma once
#include <sys/types.h>

#include <boost/json/object.hpp>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/soak/evictions.hpp"
#include "benchmarks/soak/findings.hpp"
#include "benchmarks/soak/samples.hpp"
#include "testbed/testbed.hpp"

namespace bench::soak {

/// Whether each was told once, hit whom it may and was over in time; how many there were, by what became of them.
boost::json::object judge_evictions(const std::vector<Eviction>& evictions, Findings& findings);

/// Whether memory and threads stayed flat from the end of the warm-up on, and the trends of all three; null where the
/// samples are too few. Memory is not judged where a sanitizer keeps what was freed. Descriptors follow the pods and
/// subscribers that happen to be there, by dozens: they are judged to the last one where the same pods stand and nobody
/// reads, before and after.
boost::json::object judge_growth(std::span<const Sample> samples, double warm_up_minutes, Findings& findings);

/// How many descriptors a process has open on what: "socket", "memory.stat", "anon_inode", …
[[nodiscard]] std::map<std::string, int> descriptors_of(pid_t process);
/// "socket +1, memory.stat -2"; empty: they are the same.
[[nodiscard]] std::string difference(std::map<std::string, int> before, const std::map<std::string, int>& after);

/// Sandboxes, containers, cgroups of pods and mounts, once there are no pods any more.
void look_for_leftovers(testbed::Testbed& testbed, Findings& findings);
/// Once evictd has ended.
void look_for_cgroups_of_evictd(testbed::Testbed& testbed, Findings& findings);

}  // namespace bench::soak
