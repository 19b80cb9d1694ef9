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
  WorkingSet,    ///< capacity − (usage − inactive_file), as the kubelet defines it, from 1.32 on for the root of v2
  MemFree,       ///< the same, with MemTotal − MemFree as the usage of the root of v2: kubelets before 1.32
  MemAvailable,  ///< the kernel's own estimate in /proc/meminfo; of the whole machine, so only for the root cgroup
};

/// A wake source that can be switched off.
enum class NotifierSource : std::uint8_t {
  Memcg,      ///< the kernel's memory thresholds (cgroup v1)
  Oom,        ///< the kernel's word that a cgroup is out of memory (cgroup v1)
  Files,      ///< pods' volumes and logs, images and static pods
  Sampler,    ///< memory, disks and process ids, read at a pace that follows the distance
  Psi,        ///< stalls for memory
  KernelOom,  ///< the kernel's word of whom its OOM killer has killed
};

/// What tells that memory runs short on cgroup v2, where the kernel has no thresholds. memory.high of the pods' cgroup
/// does so where it stands at the first hard one, and holds whoever allocates beyond it. The sampler looks in any case.
enum class MemoryOnV2 : std::uint8_t {
  Sampler,   ///< nothing else does
  Tripwire,  ///< memory.high, until it has fired: it holds for milliseconds
  Fence,     ///< memory.high, until evictd has acted: it holds for as long as memory is short
};

/// What is done to have memory back before a pod goes.
enum class Trim : std::uint8_t {
  Off,
  Cache,  ///< file cache of pods over their request is taken
  All,    ///< and programs that listen are told
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

/// In place of a value: it is looked for on the machine (app/discovery).
inline constexpr std::string_view to_be_found = "auto";

/// `node`: where the node's numbers are read.
struct NodeSettings {
  std::string cgroup_root = "/";         ///< absolute, below the mount: the whole machine unless told otherwise
  std::string pods_cgroup{to_be_found};  ///< below `cgroup_root`: its name follows from the kubelet's cgroup driver
  MemoryAvailable memory_available = MemoryAvailable::WorkingSet;  ///< what operators know their thresholds by
  std::string cgroup_mount = "/sys/fs/cgroup";
  std::string proc_mount = "/proc";
  std::string kubelet_root = "/var/lib/kubelet";
  std::string pod_logs_dir;  ///< no key: the kubelet's podLogsDir is where the runtime is told to write them
  /// The kubelet's own period (volumeStatsAggPeriod). Walking costs the disk a look at each file.
  core::Duration disk_usage_interval = std::chrono::minutes(1);
};

/// `cri`: the container runtime.
struct CriSettings {
  std::string endpoint{to_be_found};  ///< distributions have containerd's socket in different places
  /// Calls that do not stop a container take milliseconds; one that took two seconds will not come back.
  core::Duration timeout = std::chrono::seconds(2);
};

/// `podSources`: who else than the runtime knows pods, for what CRI does not say: priorities, exact requests, volumes.
struct PodSourceSettings {
  std::string manifests;    ///< "": the kubelet's staticPodPath, which is where static pods come from
  bool api_server = false;  ///< evictd needs no cluster, and there may be none
  std::string kubelet_url;  ///< "": the kubelet is not asked
  std::string kubelet_token_file;
  std::string kubelet_ca_file;
  /// The system's own pods live there, and tenants may not make pods in it.
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

/// In which stalls for memory are added up: the shortest window that the kernel has, since it tells of a stall after a
/// tenth of it at the earliest.
inline constexpr core::Duration psi_window = std::chrono::milliseconds(500);

/// `notifier`: what wakes the agent.
struct NotifierSettings {
  /// Nothing: each of them sees what no other one sees in time, and costs next to nothing while nothing is short.
  std::vector<NotifierSource> disable;
  /// The kubelet's own monitoring interval: with every other wake source dead, evictd is no worse.
  core::Duration fallback_interval = std::chrono::seconds(10);
  /// A child process and 8 MiB for a moment, some milliseconds each time: often enough to believe in the others.
  core::Duration self_test_interval = std::chrono::minutes(5);
  /// Until the kill pods take a third of what they take with the sampler alone. A fence slows down whoever allocates,
  /// for as long as memory is short.
  MemoryOnV2 v2 = MemoryOnV2::Tripwire;
  /// A tenth of the window (psi_window): a node at work stalls less, and what stalls more for a while may soon be short
  /// of memory.
  core::Duration psi_some = std::chrono::milliseconds(50);
  /// No task makes progress: half of the time is as bad.
  core::Duration psi_full = std::chrono::milliseconds(25);

  [[nodiscard]] bool has(NotifierSource source) const;
};

/// Who does what a kubelet does where one runs.
enum class InKubeletsPlace : std::uint8_t {
  Auto,  ///< evictd where no kubelet is, which it looks for before it does anything
  On,    ///< evictd
  Off,   ///< somebody else
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
  std::int64_t max_per_minute = 0;  ///< 0: no limit, since a limit may cost the node
  /// Where no kubelet runs nobody else would, and what a pod wrote there would stay for ever.
  InKubeletsPlace remove_volumes = InKubeletsPlace::Auto;
  /// A pod that has to read its files again is slower for it, which whoever runs the node may not want.
  Trim trim = Trim::Off;
};

/// `eviction.hooks`: who is asked before a pod is killed.
struct HookSettings {
  core::Duration time{};  ///< for all of them together; none: a kill waits for nobody unless it is configured
  /// systemd-oomd's own (systemd 260), so that its hooks need not know of evictd.
  std::string directory = "/run/systemd/oomd.prekill.hook";
};

/// `eviction.brake`: what a pod is given that would be killed at once because memory is short.
struct BrakeSettings {
  /// Off: a pod that is held may hold a lock that others wait for, which an operator has to know of.
  core::Duration time{};
  /// A program that ends writes its files through the page cache, which counts as its own: 20 MiB and some stacks.
  std::int64_t headroom = std::int64_t{32} << 20;
  /// In percent of the threshold: from there on there is no time to be given.
  std::int64_t floor = 50;
};

/// `kill`: how a pod without a grace period is killed.
struct KillSettings {
  KillMode mode = KillMode::Fast;  ///< a tenth of a millisecond, where StopContainer takes 50 to 80
};

/// Whether the kernel's OOM killer is to follow the ranking.
enum class SteerOom : std::uint8_t {
  Auto,  ///< while a threshold of memory is near, as far as evictd has the rights to
  Off,
};

/// `protection`: what is done about what evictd does not do itself.
struct ProtectionSettings {
  /// Nothing is lost by it: where nobody is killed by the kernel nothing comes of it, and it is given back.
  SteerOom steer_oom = SteerOom::Auto;
};

/// What becomes of a pod where it is not known whether it may run.
enum class Undecided : std::uint8_t { Admit, Reject };

/// `thresholds`: where they come from, and how they are changed while evictd runs.
struct ThresholdChanges {
  /// Beside agent.yaml: what the operator, or `evictctl thresholds set --save`, says on top of the kubelet's own file.
  std::string drop_ins = "/etc/evictd/thresholds.d";
  /// A slip of the pen must not empty a node before the operator can look; three are enough to save one.
  std::int64_t max_evictions_after = 3;
  /// Its command line and its files say the same without credentials.
  bool configz = false;
};

/// `admission`: what pods are told of this node where no API server knows it, and what comes of it.
struct AdmissionSettings {
  /// Of two that write the same file each would undo what the other did, and a kubelet never writes anything twice.
  InKubeletsPlace enforce = InKubeletsPlace::Auto;  ///< that containers are confined to what admission gives them
  std::map<std::string, std::string, std::less<>> node_labels;  ///< beside those of the host
  std::vector<admission::Device> devices;
};

/// `devicePlugins`: who manages devices where no kubelet does.
struct DevicePluginSettings {
  /// Where plugins look for a kubelet, if it is there and no kubelet runs or is named.
  std::string directory{to_be_found};
};

/// `criProxy`: `evictd cri-proxy`, which asks before the runtime starts a pod.
struct CriProxySettings {
  Undecided undecided = Undecided::Admit;  ///< an evictd that is down must not take the node down with it
  /// An answer takes a millisecond or two, or else the agent says that pods make room first; the client that starts
  /// pods waits for it.
  core::Duration timeout = std::chrono::seconds(2);
};

/// `shutdown`: how the node ends its pods before it goes down (shutdownGracePeriod* in the KubeletConfiguration).
struct ShutdownSettings {
  bool raise_inhibit_delay = false;  ///< the file is systemd's, and it changes the host's behaviour
  /// Gone with the boot, as what it says is; and the unit can make it, where stock systems have no directory in /etc.
  std::string logind_drop_ins = "/run/systemd/logind.conf.d";
};

/// `api`: the gRPC server.
struct ApiSettings {
  std::string group;                    ///< "": evictd, if there is such a group, or the agent's own
  std::int64_t history_limit = 4096;    ///< a few MiB at most, and days of a calm node
  std::int64_t subscriber_queue = 256;  ///< an eviction is about 8 events: 30 of them before a reader counts as slow
  /// More than a node has watchers; each holds some 20 KiB of gRPC's.
  std::int64_t subscribers = 1024;
};

/// `api.tcp`: the same API over TCP, with mutual TLS.
struct TcpApiSettings {
  std::string address;  ///< "": nothing listens on TCP unless it is configured
  std::string certificate_file;
  std::string key_file;
  std::string client_ca_file;
  std::vector<std::string> admins;   ///< names in client certificates; a name in neither list may do nothing
  std::vector<std::string> readers;  ///< "*": every client whose certificate is good
};

/// `http`: metrics and the status page.
struct HttpSettings {
  std::string address = "127.0.0.1";  ///< only this machine is served unless configured otherwise
  std::int64_t port = 0;              ///< 0: nothing listens on TCP unless it is configured
  bool page = true;                   ///< an operator who opens the port wants to see something
};

/// `log`: what is logged.
struct LogSettings {
  LogLevel level = LogLevel::Info;  ///< one line for each thing that happened, none for a quiet pass
};

/// What is evictd's own: apiVersion evictd.io/v1alpha1, kind AgentConfiguration.
struct AgentConfiguration {
  std::string state_directory = "/var/lib/evictd";  ///< as the unit's StateDirectory= makes it
  std::string runtime_directory = "/run/evictd";    ///< as the unit's RuntimeDirectory= makes it
  NodeSettings node;
  CriSettings cri;
  PodSourceSettings pod_sources;
  KubernetesSettings kubernetes;
  NotifierSettings notifier;
  EvictionTuning eviction;
  HookSettings hooks;
  BrakeSettings brake;
  KillSettings kill;
  ProtectionSettings protection;
  ThresholdChanges thresholds;
  AdmissionSettings admission;
  DevicePluginSettings device_plugins;
  CriProxySettings cri_proxy;
  ShutdownSettings shutdown;
  ApiSettings api;
  TcpApiSettings tcp_api;
  HttpSettings http;
  LogSettings log;
};

/// What is in `stateDirectory`. All of it outlives a reboot, as pods do. All paths are "" where there is no directory.
struct StateFiles {
  std::string thresholds;   ///< those of the last run: a start with others is to be noticed
  std::string allocations;  ///< which pod was given which CPUs, memory and devices; the kubelet's cpu_manager_state
  std::string events;       ///< a directory: what was evicted before a reboot is asked about afterwards
};
[[nodiscard]] StateFiles state_files(const AgentConfiguration& configuration);

/// What is in `runtimeDirectory`. None of it may outlive a boot.
struct RuntimeFiles {
  std::string lock;             ///< by whose lock a second evictd on the node refuses to run
  std::string state;            ///< timers, evictions under way, back-offs; its times are of one boot
  std::string shutdown;         ///< how far a shutdown of the node has come
  std::string kubelet_runtime;  ///< where the kubelet said last that its runtime listens
  std::string fence;         ///< empty, and there while a fence may stand: the unit looks for it when evictd has ended
  std::string oom_scores;    ///< whose oom_score_adj is raised, there while somebody's is: the unit looks for it, too
  std::string held;          ///< a directory, there while a pod may be held: the unit looks for it, too
  std::string socket;        ///< of the gRPC API for those who look
  std::string admin_socket;  ///< of the same for those who change something
  std::string cri_socket;    ///< of evictd cri-proxy
  /// On which programs learn that memory is short. In a directory of its own, which pods may mount: the socket is
  /// another one after each start, and nothing else is to be reached that way.
  std::string pressure_socket;
};
[[nodiscard]] RuntimeFiles runtime_files(const AgentConfiguration& configuration);

/// The longest name of a socket in `runtimeDirectory` that there always is: its path must fit a socket address. One
/// that is longer says so when it is opened.
inline constexpr std::string_view longest_socket_name = "evictd.sock";

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
/// `agent.yaml:12: notifier.psiSom: unknown key; did you mean "psiSome"?` One that there was once is an error that says
/// what there is instead (config/removed_keys.hpp).
[[nodiscard]] Result<AgentConfiguration> parse_agent_configuration(std::string_view text, std::string_view origin);

[[nodiscard]] Result<AgentConfiguration> load_agent_configuration(const std::filesystem::path& path);

}  // namespace evictd::config
