#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "admission/device.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"

namespace evictd::config {

// Every default stands here with its reason; agent_keys.cpp has each one's key, range and meaning to an operator.

/// What `memory.available` is computed from.
enum class MemoryAvailable : std::uint8_t {
  WorkingSet,    ///< capacity − (usage − inactive_file), as the kubelet defines it
  MemAvailable,  ///< the kernel's own estimate in /proc/meminfo; of the whole machine, so only for the root cgroup
};

/// By what pods' files are watched.
enum class FilesNotifier : std::uint8_t {
  Auto,      ///< fanotify where it is permitted, else inotify
  Fanotify,  ///< one mark a file system
  Inotify,   ///< one watch a directory
  Off,
};

/// Whether what runs out is looked at between passes, at a pace that follows the distance.
enum class Sampling : std::uint8_t {
  Auto,  ///< all, but memory on cgroup v1 only where the kernel's own thresholds cannot see it
  On,    ///< all, beside the kernel's thresholds
  Off,
};

/// What holds the pods at a hard memory threshold until evictd has acted.
enum class Fence : std::uint8_t { None, MemoryHigh };

/// How the reactor's thread is scheduled.
enum class Scheduler : std::uint8_t {
  None,        ///< as any other thread
  RoundRobin,  ///< SCHED_RR at its lowest priority: before everything ordinary
  Nice,        ///< nice -10: a larger share of the CPU
};

/// Who kills a pod that gets no time to stop.
enum class KillMode : std::uint8_t {
  Fast,  ///< evictd, through the pod's cgroup, before it tells the runtime
  Cri,   ///< the runtime alone
};

/// What the API server is told of an evicted pod.
enum class PodReport : std::uint8_t {
  None,
  Status,  ///< the pod's status becomes Failed, with reason and message
  Delete,  ///< the pod is deleted as well: no kubelet can write its own status over ours then
};

/// How the API server is told that the node is short of something.
enum class NodeReport : std::uint8_t {
  None,
  Taints,      ///< where a kubelet owns the node's conditions
  Conditions,  ///< and taints
};

enum class LogLevel : std::uint8_t { Error, Warn, Info, Debug };

/// In place of a value: it is looked for on the machine (commands/discovery).
inline constexpr std::string_view to_be_found = "auto";

/// `node`: where the node's numbers are read.
struct NodeSettings {
  std::string cgroup_root = "/";         ///< absolute, below the mount: the whole machine unless told otherwise
  std::string pods_cgroup{to_be_found};  ///< below `cgroup_root`: its name follows from the kubelet's cgroup driver
  MemoryAvailable memory_available = MemoryAvailable::WorkingSet;  ///< what operators know their thresholds by
  std::string cgroup_mount = "/sys/fs/cgroup";
  std::string proc_mount = "/proc";
  std::string kubelet_root = "/var/lib/kubelet";
  std::string pod_logs_dir;  ///< "": the kubelet's podLogsDir, which is where the runtime is told to write them
  /// The kubelet's own period (volumeStatsAggPeriod). Walking costs the disk a look at each file.
  core::Duration disk_usage_interval = std::chrono::minutes(1);
  std::string lock_file = "/run/evictd/lock";  ///< beside the sockets, on a file system that a reboot empties
};

/// `cri`: the container runtime.
struct CriSettings {
  std::string endpoint{to_be_found};  ///< distributions have containerd's socket in different places
  /// Calls that do not stop a container take milliseconds; one that took two seconds will not come back.
  core::Duration timeout = std::chrono::seconds(2);
  /// A pod that went unnoticed can be missed by the ranking for this long. Listing costs containerd a few milliseconds.
  core::Duration refresh_interval = std::chrono::seconds(10);
};

/// `podSources`: who else than the runtime knows pods, for what CRI does not say: priorities, exact requests, volumes.
struct PodSourceSettings {
  std::string manifests;    ///< "": the kubelet's staticPodPath, which is where static pods come from
  bool api_server = false;  ///< evictd needs no cluster, and there may be none
  std::string kubelet_url;  ///< "": the kubelet is not asked
  std::string kubelet_token_file;
  std::string kubelet_ca_file;
  /// A new pod is asked about at once; what else changes of a spec may wait. An answer is some 10 KB a pod.
  core::Duration kubelet_interval = std::chrono::seconds(10);
  /// The system's own pods live there, and nobody else may make pods in it.
  std::vector<std::string> trusted_namespaces{"kube-system"};
};

/// `kubernetes`: the cluster that the node belongs to, if any.
struct KubernetesSettings {
  std::string node_name;   ///< "": $NODE_NAME, which a DaemonSet sets, or the host's name, as the kubelet has it
  std::string kubeconfig;  ///< "": the service account of the pod that evictd runs in
  PodReport report = PodReport::None;             ///< without an API server nothing is told
  NodeReport node_conditions = NodeReport::None;  ///< the same
  /// 10,000 nodes that start at once are 1,000 requests a second then, which an API server takes.
  core::Duration start_spread = std::chrono::seconds(10);
};

/// `notifier`: what wakes the agent.
struct NotifierSettings {
  bool memcg = true;                          ///< the fast way; harmless where the kernel lacks it
  bool oom_control = true;                    ///< the last resort; costs nothing until the kernel is out of memory
  FilesNotifier files = FilesNotifier::Auto;  ///< thousands of watches are spared where the kernel lets us
  /// A pod may write without a break; that its files are measured anew once a second is soon enough for a disk.
  core::Duration files_interval = std::chrono::seconds(1);
  Sampling sampler = Sampling::Auto;  ///< far from every threshold it costs nothing, and nothing else sees all of it
  /// The kubelet's own monitoring interval: with every other wake source dead, evictd is no worse.
  core::Duration fallback_interval = std::chrono::seconds(10);
  /// A child process and 8 MiB for a moment, some milliseconds each time: often enough to believe in the others.
  core::Duration self_test_interval = std::chrono::minutes(5);
  Fence fence = Fence::None;  ///< it slows down whoever allocates, the innocent too: for the operator to want
  bool psi = true;            ///< it only ever makes evictd look
  /// The shortest that the kernel has: it tells of a stall after a tenth of the window at the earliest.
  core::Duration psi_window = std::chrono::milliseconds(500);
  /// A tenth of the window: a node at work stalls less, and what stalls more for a while may soon be short of memory.
  core::Duration psi_some = std::chrono::milliseconds(50);
  /// Nobody gets anything done: half of it is as bad.
  core::Duration psi_full = std::chrono::milliseconds(25);
};

/// `eviction`: how a decision is carried out.
struct EvictionTuning {
  /// Memory comes back within a second of the kill; what is left then is unmounting and logs.
  core::Duration cleanup_timeout = std::chrono::seconds(30);
  /// StopContainer with no grace takes 50 to 80 ms; two seconds mean that the runtime hangs and the processes must be
  /// killed without it.
  core::Duration stop_timeout = std::chrono::seconds(2);
  /// Off, as in the kubelet: it decides ties alone, and no scenario shows that a node fares better with it.
  core::Duration back_off{};
  std::int64_t max_per_minute = 0;               ///< 0: no limit, since a limit may cost the node
  std::string state_file = "/run/evictd/state";  ///< its times are of one boot
};

/// `kill`: how a pod without a grace period is killed.
struct KillSettings {
  KillMode mode = KillMode::Fast;  ///< a tenth of a millisecond, where StopContainer takes 50 to 80
};

/// What becomes of a pod where nobody can say whether it may run.
enum class Undecided : std::uint8_t { Admit, Reject };

/// `thresholds`: how thresholds are changed while evictd runs.
struct ThresholdChanges {
  /// Beside agent.yaml: what the operator, or `evictctl thresholds set --save`, says on top of the kubelet's own file.
  std::string drop_ins = "/etc/evictd/thresholds.d";
  /// It outlives a reboot: thresholds that changed meanwhile are to be noticed at the next start.
  std::string state_file = "/var/lib/evictd/thresholds.yaml";
  /// A slip of the pen must not empty a node before somebody can look; three are enough to save one.
  std::int64_t max_evictions_after = 3;
};

/// `admission`: what pods are told of this node where no API server knows it.
struct AdmissionSettings {
  std::map<std::string, std::string, std::less<>> node_labels;  ///< beside those of the host
  std::vector<admission::Device> devices;
  /// It outlives a reboot, as the kubelet's own cpu_manager_state does: so do pods.
  std::string state_file = "/var/lib/evictd/allocations.json";
};

/// `criProxy`: `evictd cri-proxy`, which asks before the runtime starts a pod.
struct CriProxySettings {
  std::string socket = "/run/evictd/cri.sock";
  Undecided undecided = Undecided::Admit;  ///< an evictd that is down must not take the node down with it
  /// An answer takes a millisecond or two; whoever starts pods waits for it.
  core::Duration timeout = std::chrono::seconds(2);
};

/// `shutdown`: how the node ends its pods before it goes down (shutdownGracePeriod* in the KubeletConfiguration).
struct ShutdownSettings {
  bool raise_inhibit_delay = false;  ///< the file is systemd's, and it changes the host's behaviour
  std::string logind_drop_ins = "/etc/systemd/logind.conf.d";
  std::string state_file = "/run/evictd/shutdown.json";  ///< it must not outlive a boot
};

/// `protection`: what keeps evictd itself able to act on a node that has nothing left.
struct ProtectionSettings {
  /// A page of evictd's that has to be read from a thrashing disk can take seconds.
  bool lock_memory = true;
  std::int64_t oom_score_adjust = -999;  ///< as the kubelet has it: killed last, but not before the node hangs
  /// A real-time thread needs a privilege and can hurt its neighbours; an idle evictd gets the CPU soon enough as it
  /// is.
  Scheduler scheduler = Scheduler::None;
};

/// `api`: the gRPC server.
struct ApiSettings {
  std::string socket = "/run/evictd/evictd.sock";  ///< for those who look; "": no API
  std::string admin_socket = "admin.sock";         ///< beside `socket`, for those who change; "": nobody can
  std::string group;                               ///< "": evictd, if there is such a group, or the agent's own
  std::int64_t history_limit = 4096;               ///< a few MiB at most, and days of a calm node
  /// It outlives a reboot: what was evicted before it is asked about afterwards.
  std::string history_directory = "/var/lib/evictd/events";
  std::int64_t subscriber_queue = 256;  ///< an eviction is about 8 events: 30 of them before a reader counts as slow
  /// More than a node has watchers; each holds some 20 KiB of gRPC's.
  std::int64_t subscribers = 1024;
  /// A reader that took nothing for this long is gone, and holds memory of gRPC's until it is cut off.
  core::Duration write_timeout = std::chrono::seconds(5);
};

/// Where the socket for administrators is; "": nowhere.
[[nodiscard]] std::string admin_socket_path(const ApiSettings& settings);

/// `api.tcp`: the same API over TCP, with mutual TLS.
struct TcpApiSettings {
  std::string address;  ///< "": nothing listens on TCP unless somebody wants it
  std::string certificate_file;
  std::string key_file;
  std::string client_ca_file;
  std::vector<std::string> admins;   ///< names in client certificates; whoever is in neither list may do nothing
  std::vector<std::string> readers;  ///< "*": every client whose certificate is good
};

/// `http`: metrics and the status page.
struct HttpSettings {
  std::string address = "127.0.0.1";  ///< what is served is for nobody else unless somebody wants it
  std::int64_t port = 0;              ///< 0: nothing listens on TCP unless somebody wants it
  bool page = true;                   ///< whoever opens the port wants to see something
};

/// `log`: what is logged.
struct LogSettings {
  LogLevel level = LogLevel::Info;  ///< one line for each thing that happened, none for a quiet pass
};

/// What is evictd's own: apiVersion evictd.io/v1alpha1, kind AgentConfiguration.
struct AgentConfiguration {
  NodeSettings node;
  CriSettings cri;
  PodSourceSettings pod_sources;
  KubernetesSettings kubernetes;
  NotifierSettings notifier;
  EvictionTuning eviction;
  KillSettings kill;
  ThresholdChanges thresholds;
  AdmissionSettings admission;
  CriProxySettings cri_proxy;
  ShutdownSettings shutdown;
  ProtectionSettings protection;
  ApiSettings api;
  TcpApiSettings tcp_api;
  HttpSettings http;
  LogSettings log;
};

/// A key as documentation and `evictd check` print it.
struct KeyDescription {
  std::string path;           ///< "notifier.fallbackInterval"
  std::string type;           ///< "duration, 100ms to 5m0s"
  std::string default_value;  ///< "10s"
  std::string value;          ///< as it is in the configuration described
  std::string meaning;        ///< a sentence
};

/// Every key in the order of the sections.
[[nodiscard]] std::vector<KeyDescription> describe(const AgentConfiguration& configuration);

/// A whole document. An empty one gives the defaults; an unknown key is an error that names the nearest known one:
/// `agent.yaml:12: notifier.memgc: unknown key; did you mean "memcg"?`
[[nodiscard]] Result<AgentConfiguration> parse_agent_configuration(std::string_view text, std::string_view origin);

[[nodiscard]] Result<AgentConfiguration> load_agent_configuration(const std::filesystem::path& path);

}  // namespace evictd::config
