#pragma once
#include <string_view>

// What containerd 1.6.20 says under info["info"] of a verbose status, read off a running pod. Left out: mounts,
// environment, capabilities.
namespace evictd::test {

/// A running container of a Burstable pod: 64 MiB limit, 100m CPU, oom_score_adj 968.
inline constexpr std::string_view burstable_container_info =
    R"json({"sandboxID":"0d091237d868abd7be1663e1d04cfa2240ed164fb1e99c837f9d91b3449a08c6","pid":6524,"removing":false,
"snapshotKey":"691c8360e743a6e922fb2cbd382e5157d4fff999f8b26ef4c2f88ff6a1e1e906","snapshotter":"overlayfs",
"runtimeType":"io.containerd.runc.v2","runtimeOptions":{},"config":{"metadata":{"name":"server"},
"image":{"image":"docker.io/library/box:1"},"command":["/bin/sleep"],"args":["1000"],
"labels":{"io.kubernetes.container.name":"server"},"annotations":{"io.kubernetes.pod.terminationGracePeriod":"30"},
"log_path":"server/0.log","linux":{"resources":{"cpu_shares":102,"memory_limit_in_bytes":67108864,
"oom_score_adj":968},"security_context":{"namespace_options":{"network":2}}}},"runtimeSpec":{"ociVersion":"1.0.2-dev",
"process":{"user":{"uid":0,"gid":0,"additionalGids":[0]},"args":["/bin/sleep","1000"],"cwd":"/","oomScoreAdj":968},
"root":{"path":"rootfs"},"annotations":{"io.kubernetes.cri.container-name":"server",
"io.kubernetes.cri.container-type":"container","io.kubernetes.cri.image-name":"docker.io/library/box:1",
"io.kubernetes.cri.sandbox-id":"0d091237d868abd7be1663e1d04cfa2240ed164fb1e99c837f9d91b3449a08c6",
"io.kubernetes.cri.sandbox-name":"web","io.kubernetes.cri.sandbox-namespace":"shop",
"io.kubernetes.cri.sandbox-uid":"0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11"},
"linux":{"resources":{"devices":[{"allow":false,"access":"rwm"}],"memory":{"limit":67108864,"swap":67108864},
"cpu":{"shares":102}},
"cgroupsPath":"/kubepods/burstable/pod0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11/691c8360e743a6e922fb2cbd382e5157d4fff999f8b26ef4c2f88ff6a1e1e906",
"namespaces":[{"type":"pid","path":"/proc/6489/ns/pid"},{"type":"ipc","path":"/proc/6489/ns/ipc"},{"type":"uts",
"path":"/proc/6489/ns/uts"},{"type":"mount"},{"type":"network","path":"/proc/6489/ns/net"}]}}})json";

/// A running container of a Guaranteed pod: 64 MiB, half a CPU. The machine lacks CAP_SYS_RESOURCE, so the process got
/// an oom_score_adj of 0 instead of the -997 asked for.
inline constexpr std::string_view guaranteed_container_info =
    R"json({"sandboxID":"27fb97a9702dc62be3d9db5b1d47e0953a463383ab56caba764ba25e9904a8f6","pid":7903,"removing":false,
"snapshotKey":"e44cc29a8e74a395d44e99f18bb142f95fdc2d3fb6f7e6b5361724a61a5c20e1","snapshotter":"overlayfs",
"runtimeType":"io.containerd.runc.v2","runtimeOptions":{},"config":{"metadata":{"name":"server"},
"image":{"image":"docker.io/library/box:1"},"command":["/bin/sleep"],"args":["1000"],"log_path":"server/0.log",
"linux":{"resources":{"cpu_period":100000,"cpu_quota":50000,"cpu_shares":512,"memory_limit_in_bytes":67108864,
"oom_score_adj":-997},"security_context":{"namespace_options":{"network":2}}}},
"runtimeSpec":{"ociVersion":"1.0.2-dev","process":{"user":{"uid":0,"gid":0,"additionalGids":[0]},"args":["/bin/sleep",
"1000"],"cwd":"/","oomScoreAdj":0},"root":{"path":"rootfs"},
"annotations":{"io.kubernetes.cri.container-name":"server","io.kubernetes.cri.container-type":"container",
"io.kubernetes.cri.image-name":"docker.io/library/box:1",
"io.kubernetes.cri.sandbox-id":"27fb97a9702dc62be3d9db5b1d47e0953a463383ab56caba764ba25e9904a8f6",
"io.kubernetes.cri.sandbox-name":"pu0","io.kubernetes.cri.sandbox-namespace":"shop",
"io.kubernetes.cri.sandbox-uid":"u0"},"linux":{"resources":{"devices":[{"allow":false,"access":"rwm"}],
"memory":{"limit":67108864,"swap":67108864},"cpu":{"shares":512,"quota":50000,"period":100000}},
"cgroupsPath":"/kubepods/podu0/e44cc29a8e74a395d44e99f18bb142f95fdc2d3fb6f7e6b5361724a61a5c20e1",
"namespaces":[{"type":"pid","path":"/proc/7871/ns/pid"},{"type":"ipc","path":"/proc/7871/ns/ipc"},{"type":"uts",
"path":"/proc/7871/ns/uts"},{"type":"mount"},{"type":"network","path":"/proc/7871/ns/net"}]}}})json";

/// The sandbox of the Burstable pod.
inline constexpr std::string_view sandbox_info =
    R"json({"pid":6489,"processStatus":"running","netNamespaceClosed":false,"image":"docker.io/library/box:1",
"snapshotKey":"0d091237d868abd7be1663e1d04cfa2240ed164fb1e99c837f9d91b3449a08c6","snapshotter":"overlayfs",
"runtimeHandler":"","runtimeType":"io.containerd.runc.v2","runtimeOptions":{},"config":{"metadata":{"name":"web",
"uid":"0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11","namespace":"shop"},
"log_directory":"/var/log/pods/shop_web_0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11","labels":{"app":"web"},
"annotations":{"evictd.io/priority":"1000"},
"linux":{"cgroup_parent":"/kubepods/burstable/pod0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11",
"security_context":{"namespace_options":{"network":2,"pid":1}},"resources":{"memory_limit_in_bytes":134217728}}},
"runtimeSpec":{"ociVersion":"1.0.2-dev","process":{"user":{"uid":0,"gid":0},"args":["/bin/sleep","1000000"],"cwd":"/",
"noNewPrivileges":true,"oomScoreAdj":0},"root":{"path":"rootfs","readonly":true},
"annotations":{"io.kubernetes.cri.container-type":"sandbox","io.kubernetes.cri.sandbox-cpu-period":"0",
"io.kubernetes.cri.sandbox-cpu-quota":"0","io.kubernetes.cri.sandbox-cpu-shares":"0",
"io.kubernetes.cri.sandbox-id":"0d091237d868abd7be1663e1d04cfa2240ed164fb1e99c837f9d91b3449a08c6",
"io.kubernetes.cri.sandbox-log-directory":"/var/log/pods/shop_web_0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11",
"io.kubernetes.cri.sandbox-memory":"134217728","io.kubernetes.cri.sandbox-name":"web",
"io.kubernetes.cri.sandbox-namespace":"shop","io.kubernetes.cri.sandbox-uid":"0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11"},
"linux":{"resources":{"devices":[{"allow":false,"access":"rwm"}],"cpu":{"shares":2}},
"cgroupsPath":"/kubepods/burstable/pod0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11/0d091237d868abd7be1663e1d04cfa2240ed164fb1e99c837f9d91b3449a08c6",
"namespaces":[{"type":"pid"},{"type":"ipc"},{"type":"mount"}]}},"cniResult":null})json";

}  // namespace evictd::test
