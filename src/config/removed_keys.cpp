#include "config/removed_keys.hpp"

#include <algorithm>
#include <array>

namespace evictd::config {
namespace {

constexpr std::array removed{
    RemovedKey{"node.podLogsDir", "use podLogsDir in the KubeletConfiguration"},
    RemovedKey{"node.lockFile", "use runtimeDirectory, where it is \"lock\""},
    RemovedKey{"cri.refreshInterval",
               "pods are listed once the runtime tells of one, and every minute; every 10s where it does not tell"},
    RemovedKey{"podSources.kubelet.interval", "the kubelet is asked every 10s, and at once about a new pod"},
    RemovedKey{"notifier.memcg", "use notifier.disable: [memcg] to switch it off"},
    RemovedKey{"notifier.oomControl", "use notifier.disable: [oom] to switch it off"},
    RemovedKey{"notifier.files",
               "use notifier.disable: [files] to switch it off; otherwise it is fanotify with CAP_SYS_ADMIN, inotify "
               "without"},
    RemovedKey{"notifier.filesInterval", "changed files begin a pass once a second at most"},
    RemovedKey{"notifier.sampler",
               "use notifier.disable: [sampler] to switch it off, or [memcg] to have it read memory on cgroup v1, too"},
    RemovedKey{"notifier.psi", "use notifier.disable: [psi] to switch it off"},
    RemovedKey{"notifier.fence", "use notifier.v2: fence, or notifier.v2: sampler for no fence"},
    RemovedKey{"notifier.psiWindow", "use notifier.psiSome and notifier.psiFull: the window is 500ms"},
    RemovedKey{"eviction.stateFile", "use runtimeDirectory, where it is \"state\""},
    RemovedKey{"thresholds.stateFile", "use stateDirectory, where it is \"thresholds.yaml\""},
    RemovedKey{"admission.stateFile", "use stateDirectory, where it is \"allocations.json\""},
    RemovedKey{"criProxy.socket", "use runtimeDirectory, where it is \"cri.sock\""},
    RemovedKey{"shutdown.stateFile", "use runtimeDirectory, where it is \"shutdown.json\""},
    RemovedKey{"protection.lockMemory",
               "use LimitMEMLOCK= in the systemd unit: memory is locked where that is infinity"},
    RemovedKey{"protection.oomScoreAdjust", "use OOMScoreAdjust= in the systemd unit"},
    RemovedKey{"protection.scheduler",
               "use Nice= or CPUSchedulingPolicy= in the systemd unit, with CPUSchedulingResetOnFork=yes"},
    RemovedKey{"api.socket", "use runtimeDirectory, where it is \"evictd.sock\""},
    RemovedKey{"api.adminSocket", "use runtimeDirectory, where it is \"admin.sock\""},
    RemovedKey{"api.historyDirectory", "use stateDirectory, where it is \"events\""},
    RemovedKey{"api.writeTimeout", "a subscriber that leaves an event unread for 5s is cut off"},
};

}  // namespace

std::span<const RemovedKey> removed_keys() { return removed; }

const RemovedKey* find_removed_key(std::string_view path) {
  const auto* found = std::ranges::find(removed, path, &RemovedKey::path);
  return found == removed.end() ? nullptr : found;
}

bool had_keys(std::string_view section) {
  return std::ranges::any_of(removed, [&](const RemovedKey& key) {
    return key.path.starts_with(section) && key.path.size() > section.size() && key.path[section.size()] == '.';
  });
}

}  // namespace evictd::config
