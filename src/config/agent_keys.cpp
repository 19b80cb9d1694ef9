#include "config/agent_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>  // IWYU pragma: keep: its literals
#include <ranges>
#include <utility>

#include "admission/device.hpp"
#include "config/eviction_keys.hpp"
#include "config/key_kinds.hpp"
#include "config/key_of.hpp"
#include "config/node_inventory.hpp"

namespace evictd::config {
namespace {

using namespace std::chrono_literals;
using namespace kinds;
using A = AgentConfiguration;
using Keys = std::vector<AgentKey>;

/// Or "*". (Kubernetes: a DNS label)
Result<std::string> namespace_or_all(std::string_view text) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (text == "*" || (!text.empty() && text.size() <= 63 && std::ranges::all_of(text, is_plain)))
    return std::string(text);
  return fail(fmt::format("\"{}\" is not the name of a namespace, nor \"*\"", text));
}

std::string as_it_is(const std::string& name) { return name; }

const ListOf<std::string> names{"list of names", anything, as_it_is};
const ListOf<std::string> namespaces{"list of namespaces", namespace_or_all, as_it_is};

constexpr std::array<std::pair<std::string_view, NotifierSource>, 6> source_names{
    {{"memcg", NotifierSource::Memcg},
     {"oom", NotifierSource::Oom},
     {"files", NotifierSource::Files},
     {"sampler", NotifierSource::Sampler},
     {"psi", NotifierSource::Psi},
     {"kernel-oom", NotifierSource::KernelOom}}};

Result<NotifierSource> parse_source(std::string_view text) {
  for (const auto& [name, source] : source_names)
    if (name == text) return source;
  return fail(fmt::format("\"{}\" is none of {}", text, fmt::join(source_names | std::views::keys, "|")));
}

std::string print_source(const NotifierSource& source) {
  for (const auto& [name, known] : source_names)
    if (known == source) return std::string(name);
  return {};
}

Keys directory_keys() {
  return {
      key<&A::state_directory>(
          "stateDirectory", optional_path,
          "Where evictd keeps what outlives a reboot: thresholds.yaml, the thresholds in force, so that a start with "
          "others is noticed; allocations.json, which pod was given which CPUs, memory and devices; events, a "
          "directory, so that events and their numbers go on; \"\": nowhere."),
      key<&A::runtime_directory>(
          "runtimeDirectory", socket_directory,
          "Where evictd keeps what is of one boot, on a tmpfs: state, with timers, evictions under way, back-offs, "
          "unsaved thresholds and the newest events, for an evictd that starts anew; shutdown.json, how far a shutdown "
          "of the node has come; kubelet-runtime, the runtime that the kubelet named last; held, what was changed of "
          "pods that are held, fence and oom-scores, that something has to be undone when evictd has ended; lock, by "
          "which a second evictd on the node refuses to run; and the sockets: "
          "evictd.sock, the gRPC API for those who look (mode 0660), admin.sock, the same for those who change "
          "something (mode 0600), cri.sock, that of evictd cri-proxy, and pressure/pressure.sock, on which programs "
          "learn that memory is short (mode 0666; eviction.trim)."),
  };
}

Keys node_keys() {
  using S = NodeSettings;
  const OneOf<MemoryAvailable> available{{{"workingSet", MemoryAvailable::WorkingSet},
                                          {"memFree", MemoryAvailable::MemFree},
                                          {"memAvailable", MemoryAvailable::MemAvailable}}};
  return {
      key<&A::node, &S::cgroup_root>(
          "node.cgroupRoot", cgroup,
          "The cgroup that stands for the node. Its limit, where smaller than the machine's memory, is the capacity."),
      key<&A::node, &S::pods_cgroup>(
          "node.podsCgroup", relative_cgroup,
          "The cgroup of all pods, below node.cgroupRoot; auto: kubepods or kubepods.slice, whichever is there; by the "
          "runtime's cgroup driver, or else the kubelet's, where both or neither are."),
      key<&A::node, &S::memory_available>(
          "node.memoryAvailable", available,
          "What memory.available is: capacity less the working set (of cgroup v2's root as "
          "kubelets from 1.32 on count it: anon + file less inactive_file); memFree: "
          "the same, with the root's usage as older kubelets count it: what is not "
          "MemFree, slab and huge pages as well; or the kernel's MemAvailable (only "
          "with node.cgroupRoot /)."),
      key<&A::node, &S::cgroup_mount>("node.cgroupMount", path, "Where the cgroup hierarchy is mounted."),
      key<&A::node, &S::proc_mount>("node.procMount", path, "Where proc is mounted."),
      key<&A::node, &S::kubelet_root>("node.kubeletRoot", path,
                                      "The kubelet's root directory, with the pods' volumes."),
      key<&A::node, &S::disk_usage_interval>("node.diskUsageInterval", DurationBetween{1s, 1h},
                                             "How often the logs and local volumes of a pod are measured."),
  };
}

Keys cri_keys() {
  using S = CriSettings;
  return {
      key<&A::cri, &S::endpoint>(
          "cri.endpoint", endpoint_or_auto,
          "The container runtime's socket; auto: what the kubelet says, or said last where none runs, otherwise where "
          "containerd usually listens."),
      key<&A::cri, &S::timeout>("cri.timeout", DurationBetween{100ms, 1min}, "The deadline of a call to the runtime."),
  };
}

Keys pod_source_keys() {
  using S = PodSourceSettings;
  return {
      key<&A::pod_sources, &S::manifests>("podSources.manifests", optional_path,
                                          "A directory with manifests of static pods, YAML or JSON, for the specs of "
                                          "pods that run; \"\": the kubelet's "
                                          "staticPodPath."),
      key<&A::pod_sources, &S::api_server>("podSources.apiServer", Flag{},
                                           "Whether the API server is asked for the specs of this node's pods."),
      key<&A::pod_sources, &S::trusted_namespaces>("podSources.trustedNamespaces", namespaces,
                                                   "Where a pod is critical by its own annotations and labels, and its "
                                                   "annotated spec is believed as it is; \"*\": "
                                                   "everywhere. Elsewhere only a manifest, the "
                                                   "kubelet or the API server can say so."),
      key<&A::pod_sources, &S::kubelet_url>(
          "podSources.kubelet.url", optional_url,
          "The kubelet's address, such as https://127.0.0.1:10250 or http://127.0.0.1:10255; \"\": it is not asked."),
      key<&A::pod_sources, &S::kubelet_token_file>("podSources.kubelet.tokenFile", optional_path,
                                                   "A file with the bearer token for the kubelet; \"\": none."),
      key<&A::pod_sources, &S::kubelet_ca_file>(
          "podSources.kubelet.caFile", optional_path,
          "Certificates that may have signed the kubelet's, PEM; \"\": the system's."),
  };
}

Keys kubernetes_keys() {
  using S = KubernetesSettings;
  const OneOf<PodReport> reports{
      {{"none", PodReport::None}, {"status", PodReport::Status}, {"delete", PodReport::Delete}}};
  const OneOf<NodeReport> conditions{
      {{"none", NodeReport::None}, {"taints", NodeReport::Taints}, {"conditions", NodeReport::Conditions}}};
  return {
      key<&A::kubernetes, &S::node_name>("kubernetes.nodeName", text,
                                         "What the cluster calls this node; \"\": $NODE_NAME, or the host's name."),
      key<&A::kubernetes, &S::kubeconfig>(
          "kubernetes.kubeconfig", optional_path,
          "How to reach the API server; \"\": by the service account of the pod that evictd runs in."),
      key<&A::kubernetes, &S::report>("kubernetes.report", reports,
                                      "What the API server is told of an evicted pod: nothing, its status (Failed, "
                                      "Evicted), or that it is to be deleted."),
      key<&A::kubernetes, &S::node_conditions>(
          "kubernetes.nodeConditions", conditions,
          "Whether the node's pressure is written to the API server as taints, or as conditions and taints."),
      key<&A::kubernetes, &S::start_spread>(
          "kubernetes.startSpread", DurationBetween{0s, 10min},
          "Within what time after its start evictd first asks the API server, at random: so many nodes do not ask at "
          "once."),
  };
}

Keys notifier_keys() {
  using S = NotifierSettings;
  using enum MemoryOnV2;
  const OneOf<MemoryOnV2> on_v2{{{"tripwire", Tripwire}, {"sampler", Sampler}, {"fence", Fence}}};
  return {
      key<&A::notifier, &S::disable>(
          "notifier.disable",
          ListOf<NotifierSource>{"list of memcg, oom, files, sampler, psi and kernel-oom", parse_source, print_source},
          "Wake sources that are not used, by the names that evictctl status has for them: memcg, the kernel's memory "
          "thresholds (cgroup v1); oom, its word that the node or its pods are out of memory (cgroup v1); files, what "
          "changes in pods' volumes and logs, in images and in static pods; sampler, memory, disks and process ids as "
          "often as their distance to a threshold demands; psi, stalls for memory; kernel-oom, whom the kernel's OOM "
          "killer has killed: events KERNEL_OOM."),
      key<&A::notifier, &S::fallback_interval>("notifier.fallbackInterval", DurationBetween{100ms, 5min},
                                               "How often the node is looked at when nothing woke evictd."),
      key<&A::notifier, &S::self_test_interval>("notifier.selfTestInterval", DurationBetween{0s, 24h},
                                                "How often evictd crosses a threshold of a cgroup of its own, to see "
                                                "that the kernel tells of it; 0s: never."),
      key<&A::notifier, &S::v2>(
          "notifier.v2", on_v2,
          "What tells on cgroup v2 that memory runs short, beside the sampler: tripwire, memory.high of the pods' "
          "cgroup, "
          "at the first hard memory threshold until it has told of a crossing; fence, the same until evictd has acted, "
          "so that the pods are held as long as memory is short; sampler, nothing else."),
      key<&A::notifier, &S::psi_some>(
          "notifier.psiSome", DurationBetween{0s, psi_window},
          "For how long some task waits for memory within 500ms that begin a pass; 0s: none do. Without "
          "CAP_SYS_RESOURCE the kernel takes windows of 2s, and the stalls grow with them."),
      key<&A::notifier, &S::psi_full>(
          "notifier.psiFull", DurationBetween{0s, psi_window},
          "For how long all tasks wait for memory at once within 500ms that begin a pass; 0s: none do."),
  };
}

Keys kill_keys() {
  using S = KillSettings;
  const OneOf<KillMode> modes{{{"fast", KillMode::Fast}, {"cri", KillMode::Cri}}};
  return {
      key<&A::kill, &S::mode>("kill.mode", modes,
                              "Who kills a pod that gets no time to stop: evictd, through its cgroup, before it tells "
                              "the runtime; or the runtime alone."),
  };
}

Keys protection_keys() {
  using S = ProtectionSettings;
  const OneOf<SteerOom> modes{{{"auto", SteerOom::Auto}, {"off", SteerOom::Off}}};
  return {
      key<&A::protection, &S::steer_oom>(
          "protection.steerOom", modes,
          "Whether the kernel's OOM killer is to take pods in evictd's order: auto, while a memory threshold is near, "
          "by raising the oom_score_adj of the likeliest pods' processes as far as evictd may write it; off, it is "
          "left "
          "as it is."),
  };
}

Keys threshold_keys() {
  using S = ThresholdChanges;
  return {
      key<&A::thresholds, &S::drop_ins>(
          "thresholds.dropIns", optional_path,
          "A directory with KubeletConfigurations whose eviction fields come on top of the kubelet's own, file by file "
          "in the order of their names; \"\": none."),
      key<&A::thresholds, &S::max_evictions_after>(
          "thresholds.maxEvictionsAfter", CountBetween{0, 1000},
          "How many pods may be evicted in the minute after thresholds changed; 0: as many as it takes."),
      key<&A::thresholds, &S::configz>(
          "thresholds.configz", Flag{},
          "Whether the kubelet at podSources.kubelet.url is asked (GET /configz) what it goes by, in place of reading "
          "its command line and its files. Until it has answered once, nothing is evicted."),
  };
}

Keys admission_keys() {
  using S = AdmissionSettings;
  return {
      key<&A::admission, &S::enforce>(
          "admission.enforce", in_kubelets_place(),
          "Whether containers are confined to the CPUs and the NUMA nodes that they are given; auto: where no kubelet "
          "does that."),
      key<&A::admission, &S::node_labels>(
          "admission.nodeLabels", MapOf{"list of KEY=VALUE", parse_label},
          "Labels of this node, [zone=a, disk=ssd], beside kubernetes.io/hostname, /os and /arch, where no API server "
          "tells them."),
      key<&A::admission, &S::devices>(
          "admission.devices",
          ListOf<admission::Device>{"list of RESOURCE=ID[@NUMA-NODES]", parse_device, print_device},
          "Devices that pods may ask for as an extended resource, with the NUMA nodes that they are attached to: "
          "[example.com/gpu=gpu0@0, example.com/gpu=gpu1@1]."),
  };
}

Keys device_plugin_keys() {
  using S = DevicePluginSettings;
  return {
      key<&A::device_plugins, &S::directory>(
          "devicePlugins.directory", path_or_auto,
          "The directory in which device plugins register (kubelet.sock) and have their sockets, which are removed at "
          "the start; auto: /var/lib/kubelet/device-plugins, if that is there and no kubelet runs or is named "
          "(podSources.apiServer, podSources.kubelet.url, thresholds.configz), until one comes; \"\": none."),
  };
}

Keys cri_proxy_keys() {
  using S = CriProxySettings;
  const OneOf<Undecided> undecided{{{"admit", Undecided::Admit}, {"reject", Undecided::Reject}}};
  return {
      key<&A::cri_proxy, &S::undecided>(
          "criProxy.undecided", undecided,
          "What evictd cri-proxy does with a pod where the agent does not answer: admit or reject."),
      key<&A::cri_proxy, &S::timeout>(
          "criProxy.timeout", DurationBetween{10ms, 1min},
          "How long evictd cri-proxy waits for the agent's answer, or its word that pods make room first."),
  };
}

Keys shutdown_keys() {
  using S = ShutdownSettings;
  return {
      key<&A::shutdown, &S::raise_inhibit_delay>("shutdown.raiseInhibitDelay", Flag{},
                                                 "Whether systemd-logind is told to wait as long as the pods' shutdown "
                                                 "grace periods need, where it does not."),
      key<&A::shutdown, &S::logind_drop_ins>("shutdown.logindDropIns", path,
                                             "The directory in which logind looks for additions to its configuration."),
  };
}

Keys api_keys() {
  using S = ApiSettings;
  return {
      key<&A::api, &S::group>("api.group", text,
                              "The group that may use evictd.sock, by name; \"\": evictd, if there is such a group, or "
                              "the agent's own."),
      key<&A::api, &S::history_limit>("api.historyLimit", CountBetween{1, 1'000'000},
                                      "How many events are kept for those who subscribe later."),
      key<&A::api, &S::subscribers>("api.subscribers", CountBetween{1, 65'536},
                                    "How many may follow the events at the same time."),
      key<&A::api, &S::subscriber_queue>("api.subscriberQueue", CountBetween{1, 65'536},
                                         "How many events may wait for a slow subscriber before it misses some."),
  };
}

Keys tcp_api_keys() {
  using S = TcpApiSettings;
  return {
      key<&A::tcp_api, &S::address>("api.tcp.address", text,
                                    "HOST:PORT of the gRPC API over TCP with mutual TLS; \"\": there is none."),
      key<&A::tcp_api, &S::certificate_file>("api.tcp.certificateFile", optional_path,
                                             "The server's certificate and those above it, PEM. Read anew when it "
                                             "changes, as are the next two."),
      key<&A::tcp_api, &S::key_file>("api.tcp.keyFile", optional_path, "The server's private key, PEM."),
      key<&A::tcp_api, &S::client_ca_file>("api.tcp.clientCaFile", optional_path,
                                           "Certificates that may have signed a client's, PEM."),
      key<&A::tcp_api, &S::admins>("api.tcp.admins", names,
                                   "Names (CN or DNS) in the certificates of clients that may change something."),
      key<&A::tcp_api, &S::readers>("api.tcp.readers", names,
                                    "The same of clients that may only look; \"*\": all with a good certificate."),
  };
}

Keys http_keys() {
  using S = HttpSettings;
  return {
      key<&A::http, &S::address>("http.address", text, "The IP address on which metrics and the page are served."),
      key<&A::http, &S::port>("http.port", CountBetween{0, 65'535},
                              "The TCP port of metrics (/metrics) and of the page (/); 0 switches both off."),
      key<&A::http, &S::page>("http.page", Flag{}, "Whether there is a page beside the metrics."),
  };
}

Keys log_keys() {
  using S = LogSettings;
  const OneOf<LogLevel> levels{
      {{"error", LogLevel::Error}, {"warn", LogLevel::Warn}, {"info", LogLevel::Info}, {"debug", LogLevel::Debug}}};
  return {
      key<&A::log, &S::level>("log.level", levels, "The least severe messages that are logged."),
  };
}

}  // namespace

const std::vector<AgentKey>& agent_keys() {
  static const Keys all = [] {
    Keys keys;
    for (auto& section :
         {directory_keys(),  node_keys(),      cri_keys(),       pod_source_keys(),    kubernetes_keys(),
          notifier_keys(),   eviction_keys(),  brake_keys(),     hook_keys(),          kill_keys(),
          protection_keys(), threshold_keys(), admission_keys(), device_plugin_keys(), cri_proxy_keys(),
          shutdown_keys(),   api_keys(),       tcp_api_keys(),   http_keys(),          log_keys()})
      keys.insert(keys.end(), section.begin(), section.end());
    return keys;
  }();
  return all;
}

}  // namespace evictd::config
