#include "config/kubelet_configuration.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/shutdown_groups.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::config::kubelet_configuration_test {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

Result<KubeletConfiguration> parse(std::string_view body) {
  return parse_kubelet_configuration(
      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + std::string(body), "kubelet.yaml");
}

}  // namespace

TEST_CASE("without a word on evictions the kubelet's defaults hold") {
  for (const auto& configuration : {value_of(parse_kubelet_configuration("", "kubelet.yaml")), value_of(parse("")),
                                    value_of(parse("evictionHard:\n"))}) {
    CHECK_FALSE(configuration.eviction.hard);
    CHECK(configuration.eviction.enforce_node_allocatable == std::vector<std::string>{"pods"});
    CHECK(configuration.max_pods == 110);
  }
}

TEST_CASE("an empty evictionHard is not an absent one") {
  const auto configuration = value_of(parse("evictionHard: {}\n"));
  REQUIRE(configuration.eviction.hard);
  CHECK(configuration.eviction.hard->empty());
}

TEST_CASE("the eviction settings reach the core as they were written") {
  const auto settings = value_of(parse(R"(
evictionHard:
  memory.available: 150Mi
  nodefs.available: "10%"
  pid.available: 1000
evictionSoft: {memory.available: 2Gi}
evictionSoftGracePeriod: {memory.available: 2m}
evictionMinimumReclaim: {memory.available: 0}
evictionMaxPodGracePeriod: 5
evictionPressureTransitionPeriod: 30s
mergeDefaultEvictionSettings: true
enforceNodeAllocatable: [none]
localStorageCapacityIsolation: false
)"))
                            .eviction;
  CHECK(settings.hard == core::EvictionSettings::BySignal{
                             {"memory.available", "150Mi"}, {"nodefs.available", "10%"}, {"pid.available", "1000"}});
  CHECK(settings.soft == core::EvictionSettings::BySignal{{"memory.available", "2Gi"}});
  CHECK(settings.soft_grace_period == core::EvictionSettings::BySignal{{"memory.available", "2m"}});
  CHECK(settings.minimum_reclaim == core::EvictionSettings::BySignal{{"memory.available", "0"}});
  CHECK(settings.max_pod_grace_period_seconds == 5);
  CHECK(settings.pressure_transition_period == 30s);
  CHECK(settings.merge_defaults);
  CHECK(settings.enforce_node_allocatable == std::vector<std::string>{"none"});
  CHECK_FALSE(settings.local_storage_capacity_isolation);
}

TEST_CASE("every other field that evictd knows reaches its place") {
  const auto configuration = value_of(parse(R"(
kernelMemcgNotification: true
imageMinimumGCAge: 1h30m
allowedUnsafeSysctls: ["net.core.somaxconn", "kernel.msg*"]
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
topologyManagerPolicy: restricted
topologyManagerScope: pod
topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: true}
memoryManagerPolicy: Static
reservedMemory:
- numaNode: 1
  limits: {memory: 1Gi, hugepages-2Mi: 4Mi}
reservedSystemCPUs: "0,1"
kubeReserved: {cpu: 500m, memory: 1Gi}
systemReserved: {memory: 512Mi}
cgroupDriver: systemd
containerRuntimeEndpoint: unix:///run/c.sock
podLogsDir: /logs
staticPodPath: /etc/kubernetes/manifests
maxPods: 250
featureGates: {EventedPLEG: true, NodeSwap: false}
)"));
  CHECK(configuration.kernel_memcg_notification);
  CHECK(configuration.image_minimum_gc_age == 90min);
  CHECK(configuration.allowed_unsafe_sysctls == std::vector<std::string>{"net.core.somaxconn", "kernel.msg*"});
  CHECK(configuration.shutdown_grace_period == 30s);
  CHECK(configuration.shutdown_grace_period_critical_pods == 10s);
  CHECK(configuration.topology_manager_policy == "restricted");
  CHECK(configuration.topology_manager_scope == "pod");
  CHECK(configuration.topology_manager_policy_options == PolicyOptions{{"prefer-closest-numa-nodes", "true"}});
  CHECK(configuration.cpu_manager_policy == "static");
  CHECK(configuration.cpu_manager_policy_options == PolicyOptions{{"full-pcpus-only", "true"}});
  CHECK(configuration.memory_manager_policy == "Static");
  REQUIRE(configuration.reserved_memory.size() == 1);
  CHECK(configuration.reserved_memory[0].numa_node == 1);
  CHECK(configuration.reserved_memory[0].limits.at("memory").value() == std::int64_t{1} << 30);
  CHECK(configuration.reserved_system_cpus == "0,1");
  CHECK(configuration.kube_reserved.at("cpu").milli_value() == 500);
  CHECK(configuration.system_reserved.at("memory").value() == std::int64_t{512} << 20);
  CHECK(configuration.cgroup_driver == "systemd");
  CHECK(configuration.container_runtime_endpoint == "unix:///run/c.sock");
  CHECK(configuration.pod_logs_dir == "/logs");
  CHECK(configuration.static_pod_path == "/etc/kubernetes/manifests");
  CHECK(configuration.max_pods == 250);
  CHECK(configuration.evented_pleg());
  CHECK_FALSE(KubeletConfiguration{}.evented_pleg());
}

TEST_CASE("what changed besides evictions is named by its key") {
  const auto before = value_of(parse("evictionHard: {memory.available: 1Gi}\nmaxPods: 110\n"));
  CHECK(changed_keys(before, value_of(parse("evictionHard: {memory.available: 2Gi}\n"))).empty());
  const auto after =
      value_of(parse("kernelMemcgNotification: true\nimageMinimumGCAge: 1h\nstaticPodPath: /manifests\nmaxPods: 10\n"));
  CHECK(changed_keys(before, after) == std::vector<std::string>{"imageMinimumGCAge", "staticPodPath", "maxPods"});
}

TEST_CASE("how the node's pods end is read in either form, and what the kubelet refuses is refused, with its line") {
  const auto by_priority = value_of(parse(R"(
shutdownGracePeriodByPodPriority:
- {priority: 100000, shutdownGracePeriodSeconds: 10}
- {priority: 0, shutdownGracePeriodSeconds: 60}
)"));
  CHECK(by_priority.shutdown_grace_period_by_pod_priority == std::vector<PriorityGracePeriod>{{100000, 10}, {0, 60}});
  CHECK(value_of(shutdown_groups(by_priority)) == core::ShutdownGroups{{0, 60s}, {100000, 10s}});
  CHECK(
      value_of(shutdown_groups(value_of(parse("shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n")))) ==
      core::ShutdownGroups{{0, 20s}, {2'000'000'000, 10s}});
  CHECK(value_of(shutdown_groups(KubeletConfiguration{})).empty());

  CHECK(error_of(parse("maxPods: 5\nshutdownGracePeriod: 500ms\n")) ==
        "kubelet.yaml:4: shutdownGracePeriod: 500ms must be either zero or at least 1s");
  CHECK(error_of(parse("shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 6s\n")) ==
        "kubelet.yaml:4: shutdownGracePeriodCriticalPods: 6s must not be more than shutdownGracePeriod, 5s");
  CHECK(error_of(parse("shutdownGracePeriod: 5s\nshutdownGracePeriodByPodPriority:\n"
                       "- {priority: 0, shutdownGracePeriodSeconds: 1}\n")) ==
        "kubelet.yaml:4: shutdownGracePeriodByPodPriority: cannot be specified together with shutdownGracePeriod");
  CHECK(value_of(shutdown_groups(value_of(parse("shutdownGracePeriod: 0s\nshutdownGracePeriodByPodPriority:\n"
                                                "- {priority: 0, shutdownGracePeriodSeconds: 0}\n")))) ==
        core::ShutdownGroups{{0, 0s}});
  for (const auto* seconds : {"-1", "1000000001", "9223372036854775807"})
    CHECK(
        error_of(parse(fmt::format(
            "shutdownGracePeriodByPodPriority:\n- {{priority: 3, shutdownGracePeriodSeconds: {}}}\n", seconds))) ==
        "kubelet.yaml:3: shutdownGracePeriodByPodPriority: the grace period of priority 3 must be from 0 to 1000000000 "
        "seconds");
}

TEST_CASE(
    "how old an image has to be: two minutes where nothing or 0 is written, and as with a kubelet less than none") {
  const auto age = [](std::string_view text) { return value_of(parse(text)).image_minimum_gc_age; };
  CHECK(age("") == 2min);
  CHECK(age("imageMinimumGCAge:\n") == 2min);
  CHECK(age("imageMinimumGCAge: 0s\n") == 2min);
  CHECK(age("imageMinimumGCAge: \"0\"\n") == 2min);
  CHECK(age("imageMinimumGCAge: -1s\n") == -1s);
  for (const auto* text : {"imageMinimumGCAge: 2\n", "imageMinimumGCAge: soon\n", "imageMinimumGCAge: {minutes: 2}\n",
                           "imageMinimumGCAge: 1000000h1000000h1000000h\n"}) {
    const auto error = error_of(parse(text));
    CHECK_MESSAGE(error.starts_with("kubelet.yaml:3: imageMinimumGCAge: "), error);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("fields that only the kubelet cares about are passed over") {
  CHECK(error_of(parse(R"(
address: 0.0.0.0
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s}
clusterDNS: [10.96.0.10]
containerLogMaxSize: 10Mi
cpuCFSQuota: true
eventBurst: 100
eventRecordQPS: 50
imageGCHighThresholdPercent: 85
imageMaximumGCAge: 0s
nodeStatusReportFrequency: 0s
podCIDR: ""
podsPerCore: 0
protectKernelDefaults: true
runtimeRequestTimeout: 2m
serializeImagePulls: true
shutdownGracePeriodOfTheFuture: 1s
volumePluginDir: /x
)")) == "no error");
}

TEST_CASE("a misspelt eviction field is an error, for it would switch a threshold off in silence") {
  const auto meant = [](std::string_view key) { return error_of(parse(std::string(key) + ": {}\n")); };
  CHECK(meant("evictionHrad") == "kubelet.yaml:3: evictionHrad: unknown key; did you mean \"evictionHard\"?");
  CHECK(meant("evicitonHard") == "kubelet.yaml:3: evicitonHard: unknown key; did you mean \"evictionHard\"?");
  CHECK(meant("evictHard").ends_with("did you mean \"evictionHard\"?"));
  CHECK(meant("EvictionSoft").ends_with("did you mean \"evictionSoft\"?"));
  CHECK(meant("evictionSoftGracePeriods").ends_with("did you mean \"evictionSoftGracePeriod\"?"));
  CHECK(meant("evictionMinReclaim").ends_with("did you mean \"evictionMinimumReclaim\"?"));
  CHECK(meant("evictionX").find("unknown key; did you mean \"eviction") != std::string::npos);
  CHECK(meant("enforceNodeAllocatble").ends_with("did you mean \"enforceNodeAllocatable\"?"));
  CHECK(meant("mergeDefaultEvictionSetting").ends_with("did you mean \"mergeDefaultEvictionSettings\"?"));
}

TEST_CASE("a threshold the core refuses is found in the file") {
  CHECK(error_of(parse("evictionHard:\n  nodefs.available: 10%\n  memory.available: 5x\n"))
            .starts_with("kubelet.yaml:5: evictionHard: memory.available: \"5x\" "));
  CHECK(error_of(parse("evictionHard:\n  memory.avail: 5Mi\n")) ==
        "kubelet.yaml:4: evictionHard: memory.avail: unsupported eviction signal memory.avail");
  CHECK(error_of(parse("\nevictionSoft: {memory.available: 1Gi}\n"))
            .starts_with("kubelet.yaml:4: evictionSoft: memory.available: "));
  CHECK(error_of(parse("evictionPressureTransitionPeriod: -5s\n"))
            .starts_with("kubelet.yaml:3: evictionPressureTransitionPeriod: \"-5s\" "));
}

TEST_CASE("values of the wrong type are named with key and value") {
  CHECK(error_of(parse("evictionHard: 100Mi\n")) ==
        "kubelet.yaml:3: evictionHard: \"100Mi\" stands where a mapping is expected");
  CHECK(error_of(parse("evictionHard:\n  memory.available: [1Gi]\n")) ==
        "kubelet.yaml:4: evictionHard: memory.available: a list stands where text is expected");
  CHECK(error_of(parse("evictionHard:\n  memory.available:\n")) ==
        "kubelet.yaml:4: evictionHard: memory.available: nothing stands where text is expected");
  CHECK(error_of(parse("evictionMaxPodGracePeriod: 5s\n")) ==
        "kubelet.yaml:3: evictionMaxPodGracePeriod: \"5s\" is not a whole number");
  CHECK(error_of(parse("evictionMaxPodGracePeriod: 2147483648\n")) ==
        "kubelet.yaml:3: evictionMaxPodGracePeriod: \"2147483648\" is out of range: -2147483648 to 2147483647");
  CHECK(error_of(parse("kubeReserved:\n  memory: lots\n"))
            .starts_with("kubelet.yaml:4: kubeReserved: memory: \"lots\" "));
  CHECK(error_of(parse("shutdownGracePeriodByPodPriority:\n- priority: high\n")) ==
        "kubelet.yaml:4: shutdownGracePeriodByPodPriority[0].priority: \"high\" is not a whole number");
  CHECK(error_of(parse("reservedMemory:\n- numaNod: 1\n")) ==
        "kubelet.yaml:4: reservedMemory[0].numaNod: unknown key; did you mean \"numaNode\"?");
}

TEST_CASE("a sysctl that would be the host's own keeps the node from starting, as it keeps the kubelet") {
  CHECK(error_of(parse("allowedUnsafeSysctls:\n- net.core.*\n- vm.swappiness\n")) ==
        "kubelet.yaml:5: allowedUnsafeSysctls[1]: the sysctl \"vm.swappiness\" are not known to be namespaced");
  CHECK(error_of(parse("allowedUnsafeSysctls: [kernel.hostname]\n")) ==
        "kubelet.yaml:3: allowedUnsafeSysctls[0]: the sysctl \"kernel.hostname\" are not known to be namespaced");
  CHECK(error_of(parse("allowedUnsafeSysctls: [kernel.shm_*]\n")) ==
        "kubelet.yaml:3: allowedUnsafeSysctls[0]: the sysctls \"kernel.shm_*\" are not known to be namespaced");
  CHECK(error_of(parse("allowedUnsafeSysctls: [net..core]\n"))
            .starts_with("kubelet.yaml:3: allowedUnsafeSysctls[0]: sysctl \"net..core\" must have at most 253 "));
}

TEST_CASE("a field that stands there twice is an error, also among thresholds") {
  CHECK(error_of(parse("maxPods: 1\nmaxPods: 2\n")) == "kubelet.yaml:4: maxPods: stands here a second time");
  CHECK(error_of(parse("evictionHard:\n  memory.available: 1Gi\n  memory.available: 2Gi\n")) ==
        "kubelet.yaml:5: evictionHard: memory.available: stands here a second time");
}

TEST_CASE("another kind of document is no kubelet's configuration") {
  CHECK(error_of(parse_kubelet_configuration(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: CredentialProviderConfig\n", "k.yaml")) ==
        "k.yaml:2: kind: \"CredentialProviderConfig\" where \"KubeletConfiguration\" is expected");
}

TEST_CASE("a part of another document is read without a header, and its errors keep that document's lines") {
  const auto read = [](std::string_view text) {
    return read_kubelet_configuration(value_of(value_of(parse_yaml(text, "scenario.yaml")).entries()).at(0).value);
  };
  CHECK(value_of(read("config:\n  evictionHard: {memory.available: 1Gi}\n")).eviction.hard->size() == 1);
  CHECK(error_of(read("config:\n  evictionHard:\n    memory.available: 5x\n"))
            .starts_with("scenario.yaml:3: config.evictionHard: memory.available: \"5x\" "));
}

TEST_CASE("a missing file is named") {
  const Tree tree{
      file("kubelet.yaml", "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nmaxPods: 7\n")};
  CHECK(value_of(load_kubelet_configuration(tree.path("kubelet.yaml"))).max_pods == 7);
  CHECK(error_of(load_kubelet_configuration("/nowhere/k.yaml")) ==
        "/nowhere/k.yaml: cannot be read: No such file or directory");
}

}  // namespace evictd::config::kubelet_configuration_test
