#include "deployment.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <sstream>

#include "fixture/places.hpp"
#include "manifests.hpp"
#include "programs.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace kubernetes {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

/// The manifests' namespace is called evictd, as nearly everything in them.
std::string in_namespace(std::string text, const std::string& name_space) {
  const std::string wanted = "namespace: evictd";
  for (auto at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + wanted.size()))
    text.replace(at, wanted.size(), "namespace: " + name_space);
  return text;
}

/// Of the capability with this number, by capabilities(7): whether this machine lets us have it.
bool is_ours(int number) {
  std::istringstream status(testbed::read_file("/proc/self/status"));
  for (std::string key, value; status >> key >> value;)
    if (key == "CapEff:") return (std::stoull(value, nullptr, 16) >> number & 1) != 0;
  testbed::fail("/proc/self/status: no CapEff");
}

/// runc refuses what it does not have itself.
void leave_out_what_we_lack(YAML::Node added) {
  const std::map<std::string, int> numbers{{"DAC_READ_SEARCH", 2}, {"KILL", 5}, {"IPC_LOCK", 14}, {"SYS_RESOURCE", 24}};
  YAML::Node kept(YAML::NodeType::Sequence);
  for (const auto& name : added)
    if (is_ours(numbers.at(name.as<std::string>()))) kept.push_back(name);
  for (std::size_t i = added.size(); i > 0; --i) added.remove(i - 1);
  for (const auto& name : kept) added.push_back(name);
}

/// What the admission plugin ServiceAccount would add.
constexpr auto token_volume = R"(
name: token
projected:
  sources:
  - serviceAccountToken: {path: token, expirationSeconds: 3607}
  - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
  - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
)";
constexpr auto token_mount = "{name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}";

}  // namespace

std::string import_image(testbed::Testbed& testbed) {
  const auto archive = testbed.directory() / "evictd-image.tar";
  testbed::Process making{{image_program(), "--built", "--output", archive},
                          {.environment = {std::string("BUILD_DIR=") + evictd::fixture::build_root}}};
  if (making.wait(300s) != 0) testbed::fail("tools/deploy/image: " + making.errors());
  const auto said = testbed::run(
      {"ctr", "--address", testbed.containerd().socket(), "--namespace", "k8s.io", "images", "import", archive});
  const std::string before = "unpacking ";
  const auto begin = said.find(before);
  if (begin == std::string::npos) testbed::fail("ctr images import: " + said);
  auto name = said.substr(begin + before.size());
  name.resize(name.find(' '));
  testbed::wait_until("CRI knows " + name, 60s, [&] {
    const auto images = testbed.cri().images();
    return std::ranges::any_of(images,
                               [&](const auto& image) { return std::ranges::count(image.repo_tags(), name) > 0; });
  });
  return name;
}

Deployment::Deployment(Cluster& cluster, const Options& options)
    : cluster_{cluster}, directory_{cluster.testbed().directory() / "api"}, pod_{"evictd"} {
  import_image(cluster.testbed());
  create_objects(options);
  create_pod();
  testbed::wait_until("evictd's pod is ready", 180s, [&] {
    const auto pod = cluster_.pod(pod_);
    if (pod.at("/status/phase") == "Failed") testbed::fail("evictd's pod failed: " + pod.at("/status") + log());
    return pod.at("/status/containerStatuses/0/ready") == "true";
  });
}

void Deployment::create_objects(const Options& options) const {
  const auto& admin = cluster_.admin();
  for (auto manifest : read_manifests(manifest_directory())) {
    if (manifest.kind == "Namespace" || manifest.kind == "DaemonSet") continue;
    manifest.text = in_namespace(manifest.text, cluster_.name_space());
    if (!manifest.name_space.empty()) manifest.name_space = cluster_.name_space();
    if (manifest.kind == "ConfigMap") {
      auto map = YAML::Load(manifest.text);
      auto agent = YAML::Load(map["data"]["agent.yaml"].as<std::string>());
      agent["node"]["cgroupRoot"] = cluster_.testbed().node().cgroup();
      map["data"]["agent.yaml"] = YAML::Dump(agent) + "\n" + options.agent_settings;
      auto kubelet = YAML::Load(map["data"]["kubelet.yaml"].as<std::string>());
      kubelet["evictionHard"] = YAML::Load(options.eviction_hard);
      map["data"]["kubelet.yaml"] = YAML::Dump(kubelet);
      manifest.text = YAML::Dump(map);
    }
    expect_success(kubernetes::create(admin, manifest));
  }
  YAML::Node root;
  root["apiVersion"] = "v1";
  root["kind"] = "ConfigMap";
  root["metadata"]["name"] = "kube-root-ca.crt";
  root["data"]["ca.crt"] = testbed::read_file(cluster_.control_plane().authority().certificate());
  expect_success(
      admin.create(fmt::format("/api/v1/namespaces/{}/configmaps", cluster_.name_space()), YAML::Dump(root)));
}

/// What the DaemonSet's controller would make for the node.
void Deployment::create_pod() const {
  const auto daemon_set = YAML::LoadFile(manifest_directory() / "30-daemonset.yaml");
  auto pod = YAML::Clone(daemon_set["spec"]["template"]);
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  pod["metadata"]["name"] = pod_;
  auto spec = pod["spec"];
  spec["nodeName"] = node_name;
  spec["automountServiceAccountToken"] = false;

  const auto& containerd = cluster_.testbed().containerd();
  const std::map<std::string, std::string> places{{"api", directory_},
                                                  {"state", directory_ / "state"},
                                                  {"containerd", containerd.directory()},
                                                  {"kubelet", cluster_.kubelet().root()},
                                                  {"images", containerd.root()}};
  for (auto volume : spec["volumes"])
    if (const auto place = places.find(volume["name"].as<std::string>()); place != places.end())
      volume["hostPath"]["path"] = place->second;
  spec["volumes"].push_back(YAML::Load(token_volume));

  auto container = spec["containers"][0];
  for (auto mount : container["volumeMounts"])  // by the name that the runtime gives it
    if (mount["name"].as<std::string>() == "images") mount["mountPath"] = containerd.root().native();
  container["volumeMounts"].push_back(YAML::Load(token_mount));
  const auto variable = [&](const std::string& name, const std::string& value) {
    YAML::Node entry;
    entry["name"] = name;
    entry["value"] = value;
    entry["value"].SetTag("tag:yaml.org,2002:str");  // a number, too
    container["env"].push_back(entry);
  };
  variable("KUBERNETES_SERVICE_HOST", "127.0.0.1");
  variable("KUBERNETES_SERVICE_PORT", fmt::format("{}", cluster_.control_plane().port()));
  leave_out_what_we_lack(container["securityContext"]["capabilities"]["add"]);
  expect_success(cluster_.admin().create(cluster_.pod_path(), YAML::Dump(pod)));
}

std::string Deployment::log() const {
  const auto uid = cluster_.pod(pod_).at("/metadata/uid");
  return testbed::try_read_file(fmt::format("/var/log/pods/{}_{}_{}/evictd/0.log", cluster_.name_space(), pod_, uid))
      .value_or("");
}

}  // namespace kubernetes
