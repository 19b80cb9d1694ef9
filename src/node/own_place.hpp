#pragma once
#include <filesystem>
#include <string>

#include "node/cgroup.hpp"
#include "os/file_error.hpp"

namespace evictd::node {

/// A cgroup in which evictd may make others, for its self-test.
struct OwnPlace {
  std::string cgroup;      ///< below the hierarchy's root: "/", "/system.slice/evictd.service"
  bool delegated = false;  ///< it is what this process was started in, not the node's
};

/// On cgroup v2 the one that this process was started in, or the one above that, where it was handed over: systemd
/// marks what a unit with Delegate= may change by the attribute "user.delegate" (systemd.resource-control(5)), and
/// wants nobody to make others, whatever his rights. Otherwise the node's cgroup, beside the pods', where this process
/// may write there, or where there is none yet. The root of the hierarchy takes CAP_DAC_OVERRIDE: it is read-only even
/// to root (mode 0555).
///
/// The error says why there is neither. Changes nothing. `proc`: a proc file system.
[[nodiscard]] os::FileResult<OwnPlace> find_own_place(const CgroupHierarchy& hierarchy, const std::string& node_cgroup,
                                                      const std::filesystem::path& proc = "/proc");

/// Makes a delegated place ready, once: hands the memory controller down there, and before that moves this process to
/// the cgroup "evictd" in it, since a cgroup that hands controllers down can have no process (cgroup-v2.rst, "No
/// Internal Process Constraint"). Other places are ready. Takes the kernel some milliseconds.
[[nodiscard]] os::FileResult<void> prepare_own_place(const CgroupHierarchy& hierarchy, const OwnPlace& place);

/// Whether this process runs in that cgroup of v2 ("/kubepods"), or below it. In a container, whose cgroup namespace
/// hides where it runs, it is taken to: whoever starts one on a node starts a pod. `proc`: a proc file system.
[[nodiscard]] bool may_run_in(const std::string& cgroup, const std::filesystem::path& proc = "/proc");

}  // namespace evictd::node
