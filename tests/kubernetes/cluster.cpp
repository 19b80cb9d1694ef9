#include "cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <system_error>

#include "testbed/failure.hpp"
#include "testbed/leftovers.hpp"
#include "testbed/wait.hpp"

namespace kubernetes {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::core::QosClass;

namespace {

/// The kubelet of this version has no option for them.
constexpr const char* pod_logs = "/var/log/pods";              // NAMESPACE_NAME_UID/
constexpr const char* container_logs = "/var/log/containers";  // NAME_NAMESPACE_CONTAINER-ID.log, links into the above

std::string manifest(const Pod& pod) {
  std::string labels;
  for (const auto& [key, value] : pod.labels) labels += fmt::format("\"{}\": \"{}\", ", key, value);
  return fmt::format(R"(apiVersion: v1
kind: Pod
metadata: {{name: "{}", labels: {{{}}}}}
spec:
  nodeName: {}
  hostNetwork: true
  restartPolicy: {}
  priorityClassName: "{}"
  terminationGracePeriodSeconds: 5
  automountServiceAccountToken: false
  tolerations: [{{operator: Exists}}]
  volumes: [{}]
  containers:
  - name: main
    image: {}
    imagePullPolicy: Never
    args: [{}]
    resources: {{{}}}
    volumeMounts: [{}]
)",
                     pod.name, labels, node_name, pod.restart_policy, pod.priority_class, pod.volumes,
                     testbed::load_image, fmt::join(pod.args, ", "), pod.resources, pod.mounts);
}

QosClass qos_of(const Answer& pod) {
  const auto text = pod.at("/status/qosClass");
  return text == "Guaranteed"   ? QosClass::Guaranteed
         : text == "BestEffort" ? QosClass::BestEffort
                                : QosClass::Burstable;
}

/// Containerd's own id, which the status has behind "containerd://".
std::string container_id(const Answer& pod) {
  const auto id = pod.at("/status/containerStatuses/0/containerID");
  return id.substr(id.rfind('/') + 1);
}

/// What stands between the first two underscores, or before the first one.
std::string part(const std::string& name, std::size_t number) {
  std::size_t begin = 0;
  for (; number > 0; --number) begin = name.find('_', begin) + 1;
  return name.substr(begin, name.find('_', begin) - begin);
}

/// Removes the entries of `directory` whose namespace, which is the name's part of this number, is wanted.
template <typename Wanted>
void remove_entries(const fs::path& directory, std::size_t number, const Wanted& wanted) {
  std::error_code missing;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory, missing))
    if (wanted(part(entry.path().filename().native(), number))) found.push_back(entry.path());
  for (const auto& path : found) fs::remove_all(path);
}

template <typename Wanted>
void remove_logs(const Wanted& wanted) {
  remove_entries(container_logs, 1, wanted);
  remove_entries(pod_logs, 0, wanted);
}

testbed::Testbed::Options without_containerd(testbed::Testbed::Options options) {
  options.start_containerd = false;
  return options;
}

/// As systemd has it of the whole machine: the kubelet, containerd and the containers see each other's mounts. It goes
/// with the directory.
void share_mounts_below(const fs::path& directory) {
  testbed::run({"mount", "--bind", directory, directory});
  testbed::run({"mount", "--make-shared", directory});
}

}  // namespace

void remove_pod_logs(const std::string& name_space) {
  remove_logs([&](const std::string& found) { return found == name_space; });
}

void remove_left_pod_logs() {
  remove_logs([](const std::string& found) { return testbed::is_leftover(found); });
}

Cluster::Cluster(const Options& options)
    : testbed_{without_containerd(options.testbed)},
      name_space_{testbed_.node().cgroup().substr(1)}  // a name of which it is known whose it was
{
  share_mounts_below(testbed_.directory());
  testbed_.containerd().start();
  expect_success(admin().create(
      "/api/v1/namespaces", fmt::format("{{apiVersion: v1, kind: Namespace, metadata: {{name: {}}}}}", name_space_)));
  kubelet_.emplace(testbed_, control_plane_, options.kubelet);
}

Cluster::~Cluster() {
  testbed::report_failure([&] {
    kubelet_.reset();  // or it would make them anew
    remove_pod_logs(name_space_);
  });
}

std::string Cluster::pod_path(const std::string& name) const {
  return fmt::format("/api/v1/namespaces/{}/pods{}{}", name_space_, name.empty() ? "" : "/", name);
}

void Cluster::create(const Pod& pod) const { expect_success(admin().create(pod_path(), manifest(pod))); }

testbed::RunningPod Cluster::run(const Pod& pod) {
  create(pod);
  Answer object;
  testbed::wait_until(fmt::format("{} runs; the kubelet's log is in {}", pod.name, kubelet_->log().native()), 120s,
                      [&] {
                        object = this->pod(pod.name);
                        return object.at("/status/phase") == "Running" && !container_id(object).empty();
                      });
  const auto uid = object.at("/metadata/uid");
  testbed::RunningPod running{.name = pod.name,
                              .name_space = name_space_,
                              .uid = uid,
                              .sandbox = "",
                              .containers = {{"main", container_id(object)}},
                              .cgroup = testbed_.node().pod_cgroup(qos_of(object), uid)};
  for (const auto& sandbox : testbed_.cri().sandboxes())
    if (sandbox.metadata().uid() == uid) running.sandbox = sandbox.id();
  return running;
}

Answer Cluster::pod(const std::string& name) const { return admin().get(pod_path(name)); }

void Cluster::remove_pod(const std::string& name) const {
  expect_success(admin().remove(pod_path(name) + "?gracePeriodSeconds=0"));
}

Answer Cluster::events_of(const std::string& kind, const std::string& name) const {
  return expect_success(admin().get(
      fmt::format("/api/v1/events?fieldSelector=involvedObject.kind={},involvedObject.name={}", kind, name)));
}

}  // namespace kubernetes
