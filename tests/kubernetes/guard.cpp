#include "guard.hpp"

#include <fmt/format.h>

#include <chrono>

#include "manifests.hpp"
#include "programs.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"

namespace kubernetes {

using namespace std::chrono_literals;

Hog::Hog(Cluster& cluster, const std::string& name, const std::string& restart_policy)
    : directory_{cluster.testbed().directory() / ("hog-" + name)} {
  std::filesystem::create_directory(directory_);
  hold(8 << 20);
  pod_ = cluster.run({.name = name,
                      .args = {"follow", "/control/size"},
                      .volumes = fmt::format("{{name: control, hostPath: {{path: \"{}\"}}}}", directory_.native()),
                      .mounts = "{name: control, mountPath: /control}",
                      .restart_policy = restart_policy});
}

void Hog::hold(std::int64_t bytes) const { testbed::replace_file(directory_ / "size", fmt::format("{}", bytes)); }

History::History(Cluster& cluster, const std::string& pod)
    : watch_{cluster.testbed().spawn({"curl", "--silent", "--no-buffer", "--noproxy", "*", "--cacert",
                                      cluster.control_plane().authority().certificate(), "--header",
                                      "Authorization: Bearer " + cluster.admin().token(),
                                      fmt::format("{}{}?watch=true&fieldSelector=metadata.name%3D{}",
                                                  cluster.control_plane().server(), cluster.pod_path(), pod)})} {
  testbed::wait_until("the watch shows " + pod, 60s, [&] { return count([](const Answer&) { return true; }) > 0; });
}

std::size_t History::count(const Condition& condition) const {
  const auto text = watch_.output();
  std::size_t result = 0;
  std::size_t end = 0;
  for (std::size_t begin = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const Answer event{.status = 200, .body = text.substr(begin, end - begin)};
    if (condition({.status = 200, .body = event.at("/object")})) ++result;
  }
  return result;
}

std::filesystem::path evictd_kubeconfig(const Cluster& cluster) {
  for (const auto& manifest : read_manifests(manifest_directory())) {
    const auto answer = create(cluster.admin(), manifest);
    if (answer.status != 409) expect_success(answer);  // 409: it is there
  }
  const auto& control_plane = cluster.control_plane();
  return control_plane.write_kubeconfig("evictd", control_plane.service_account_token("evictd", "evictd"));
}

void allow_deletion(const Cluster& cluster) {
  for (const auto& manifest : read_manifests(manifest_directory() / "variants" / "report-delete.yaml"))
    expect_success(create(cluster.admin(), manifest));
}

testbed::Agent::Options agent_options(Cluster& cluster, const std::string& thresholds, const std::string& sections) {
  return {.thresholds = thresholds,
          .node = fmt::format("kubeletRoot: \"{}\"", cluster.kubelet().root().native()),
          .sections = sections};
}

}  // namespace kubernetes
