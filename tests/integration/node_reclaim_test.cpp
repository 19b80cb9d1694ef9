#include "evict/node_reclaim.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "async/side_thread.hpp"
#include "evict/log_reclaim.hpp"
#include "os/now.hpp"
#include "reactor.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::node_reclaim_test {

using namespace std::chrono_literals;
using testbed::ContainerSpec;
using testbed::RunningPod;
using testbed::Testbed;
using testbed::wait_until;
namespace v1 = ::runtime::v1;
using Names = std::set<std::string>;

namespace {

constexpr std::int64_t MiB = 1 << 20;

const std::string load{testbed::load_image};
const std::string pause_image{testbed::pause_image};

/// A container of an image that holds nothing but ballast: its program is the host's static busybox.
ContainerSpec of_image(const std::string& image) {
  return {.command = {"/busybox", "sleep", "100000"},
          .image = image,
          .mounts = {
              {.host_path = testbed::find_program("busybox").value(), .container_path = "/busybox", .readonly = true}}};
}

Names images(Testbed& bed) {
  Names names;
  for (const auto& image : bed.cri().images()) names.insert(image.repo_tags().begin(), image.repo_tags().end());
  return names;
}

Names containers(Testbed& bed) {
  Names ids;
  for (const auto& container : bed.cri().containers()) ids.insert(container.id());
  return ids;
}

Names sandboxes(Testbed& bed) {
  Names ids;
  for (const auto& sandbox : bed.cri().sandboxes()) ids.insert(sandbox.id());
  return ids;
}

/// As a kubelet has it mounted.
std::string id_of_image(Testbed& bed, const std::string& name) {
  for (const auto& image : bed.cri().images())
    if (std::ranges::find(image.repo_tags(), name) != image.repo_tags().end()) return image.id();
  return {};
}

std::string errors(const evictd::evict::ReclaimResult& result) {
  std::string lines;
  for (const auto& error : result.errors) lines += error.message + "\n";
  return lines;
}

evictd::evict::ReclaimResult reclaim(Testbed& bed, bool of_containers, bool of_images) {
  Reactor reactor{bed};
  evictd::evict::NodeReclaimer reclaimer{reactor.runtime};
  return reactor.run(reclaimer.run(of_containers, of_images));
}

void wait_until_exited(Testbed& bed, const std::string& container) {
  wait_until("the container has exited", 60s,
             [&] { return bed.cri().container_status(container).state() == v1::CONTAINER_EXITED; });
}

/// What the kubelet does when the container has ended: the same once more, with the next attempt's number.
std::string restart(Testbed& bed, const RunningPod& pod, std::uint32_t attempt, std::vector<std::string> command) {
  v1::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod.sandbox);
  auto& metadata = *request.mutable_sandbox_config()->mutable_metadata();
  metadata.set_name(pod.name);
  metadata.set_namespace_(pod.name_space);
  metadata.set_uid(pod.uid);
  request.mutable_sandbox_config()->mutable_linux()->set_cgroup_parent(pod.cgroup);

  auto& config = *request.mutable_config();
  config.mutable_metadata()->set_name("main");
  config.mutable_metadata()->set_attempt(attempt);
  config.mutable_image()->set_image(load);
  config.mutable_command()->Assign(command.begin(), command.end());
  config.mutable_linux()->mutable_resources()->set_oom_score_adj(1000);
  auto& namespaces = *config.mutable_linux()->mutable_security_context()->mutable_namespace_options();
  namespaces.set_network(v1::NODE);
  namespaces.set_pid(v1::CONTAINER);

  const auto& calls = bed.cri().calls();
  v1::StartContainerRequest start;
  start.set_container_id(calls.ask<v1::CreateContainerResponse>(request).container_id());
  calls.ask<v1::StartContainerResponse>(start);
  return start.container_id();
}

}  // namespace

TEST_CASE("unused images and dead pods go; running pods, their images and the sandboxes' image stay") {
  Testbed bed;
  for (const auto* name : {"evictd.test/idle:1", "evictd.test/idle:2", "evictd.test/dead:1", "evictd.test/used:1"})
    bed.containerd().import_image(name, 2 * MiB);
  const auto chill = bed.cri().run_pod({.name = "chill", .containers = {{.args = {"hold", "1Mi"}}}});
  const auto used = bed.cri().run_pod({.name = "used", .containers = {of_image("evictd.test/used:1")}});
  const auto dead = bed.cri().run_pod({.name = "dead", .containers = {of_image("evictd.test/dead:1")}});
  bed.cri().stop(dead, 0s);

  const auto result = reclaim(bed, true, true);
  CHECK(errors(result) == "");
  CHECK(result.containers_removed == 1);
  CHECK(result.sandboxes_removed == 1);
  CHECK(result.images_removed == 3);
  CHECK(images(bed) == Names{load, pause_image, "evictd.test/used:1"});
  CHECK(containers(bed) == Names{chill.container(), used.container()});
  CHECK(sandboxes(bed) == Names{chill.sandbox, used.sandbox});
  CHECK(bed.cri().is_running(chill));
  CHECK(bed.cri().is_running(used));

  // Nothing that the next pod takes is missing.
  const auto next = bed.cri().run_pod({.name = "next", .containers = {{.args = {"hold", "1Mi"}}}});
  CHECK(bed.cri().is_running(next));
}

TEST_CASE("without containers to reclaim, the image of a dead one stays; without images, all of them") {
  Testbed bed;
  bed.containerd().import_image("evictd.test/idle:1", 1 * MiB);
  bed.containerd().import_image("evictd.test/dead:1", 1 * MiB);
  const auto dead = bed.cri().run_pod({.name = "dead", .containers = {of_image("evictd.test/dead:1")}});
  bed.cri().stop(dead, 0s);

  CHECK(errors(reclaim(bed, false, true)) == "");
  CHECK(images(bed) == Names{pause_image, "evictd.test/dead:1"});  // nobody used the load image
  CHECK(containers(bed) == Names{dead.container()});

  CHECK(errors(reclaim(bed, true, false)) == "");
  CHECK(images(bed) == Names{pause_image, "evictd.test/dead:1"});
  CHECK(containers(bed).empty());
  CHECK(sandboxes(bed).empty());
}

TEST_CASE("an image that somebody else removes meanwhile is no error, and the others go") {
  Testbed bed;
  const Names idle{"evictd.test/idle:1", "evictd.test/idle:2", "evictd.test/idle:3"};
  for (const auto& name : idle) bed.containerd().import_image(name, 1 * MiB);
  const auto chill = bed.cri().run_pod({.name = "chill", .containers = {{.args = {"hold", "1Mi"}}}});
  // By the time that one of them has gone it is decided that all of them go.
  std::string taken;
  const auto take_another = [&] {
    if (!taken.empty()) return;
    Names left;
    std::ranges::set_intersection(images(bed), idle, std::inserter(left, left.end()));
    if (left.size() == idle.size()) return;
    taken = *left.begin();
    v1::RemoveImageRequest request;
    request.mutable_image()->set_image(taken);
    bed.cri().calls().ask<v1::RemoveImageResponse>(request);
  };

  Reactor reactor{bed};
  evictd::evict::NodeReclaimer reclaimer{reactor.runtime};
  const auto result = reactor.run(reclaimer.run(false, true), take_another);
  CHECK(errors(result) == "");
  CHECK(idle.contains(taken));
  CHECK(result.images_removed >= 2);
  CHECK(images(bed) == Names{load, pause_image});
  CHECK(bed.cri().is_running(chill));
}

TEST_CASE("the logs of pods go that have been gone for long enough, and those of pods that the runtime has stay") {
  Testbed bed;
  const auto root = bed.directory() / "logs";
  const auto run = [&](const std::string& name) {
    testbed::PodSpec spec{.name = name, .uid = name + "-0000-1111", .containers = {{.args = {"hold", "1Mi"}}}};
    spec.log_directory = root / fmt::format("default_{}_{}", name, spec.uid);
    return bed.cri().run_pod(spec);
  };
  const auto has_log = [&](const RunningPod& pod) {
    return std::filesystem::exists(root / fmt::format("default_{}_{}/main/0.log", pod.name, pod.uid));
  };
  const auto runs = run("runs");
  const auto dead = run("dead");
  const auto gone = run("gone");
  bed.cri().stop(dead, 0s);
  bed.cri().remove(gone);

  Reactor reactor{bed};
  const auto executor = reactor.context.get_executor();
  const auto remove_gone = [&](evictd::core::Duration gone_for) {
    evictd::evict::LogReclaimer logs{executor,
                                     reactor.runtime,
                                     std::make_unique<evictd::async::SideThread>(executor, "logs"),
                                     root,
                                     [](std::string_view) { return false; },
                                     {.gone_for = gone_for, .patience = 60s}};
    for (const auto& error : reactor.run(logs.remove_gone(evictd::os::now() + 60s))) FAIL_CHECK(error.message);
  };
  remove_gone(1h);
  CHECK(has_log(gone));
  remove_gone(0s);
  CHECK_FALSE(std::filesystem::exists(root / "default_gone_gone-0000-1111"));
  CHECK(has_log(dead));
  CHECK(has_log(runs));
  CHECK(bed.cri().is_running(runs));
}

TEST_CASE("of a restarted container the last end stays and those before go, and the pod runs on") {
  Testbed bed;
  const std::vector<std::string> crash = {"sh", "-c", "exit 1"};
  const auto pod = bed.cri().run_pod({.name = "crashes", .containers = {{.command = crash}}});
  wait_until_exited(bed, pod.container());
  const auto second = restart(bed, pod, 1, crash);
  wait_until_exited(bed, second);
  const auto third = restart(bed, pod, 2, {"load", "hold", "1Mi"});

  const auto result = reclaim(bed, true, true);
  CHECK(errors(result) == "");
  CHECK(result.containers_removed == 1);
  CHECK(result.sandboxes_removed == 0);
  CHECK(containers(bed) == Names{second, third});
  CHECK(bed.cri().is_running(third));
}

TEST_CASE("a sandbox that was killed stays as long as a container runs in it, and goes afterwards") {
  Testbed bed;
  const auto pod = bed.cri().run_pod({.name = "headless", .containers = {{.args = {"hold", "1Mi"}}}});
  const auto pause = bed.node().processes(pod.cgroup + "/" + pod.sandbox);
  REQUIRE(pause.size() == 1);
  REQUIRE(::kill(pause.front(), SIGKILL) == 0);
  wait_until("the sandbox is not ready", 60s, [&] { return bed.cri().ready_pods().empty(); });

  const auto kept = reclaim(bed, true, true);
  CHECK(errors(kept) == "");
  CHECK(kept.containers_removed + kept.sandboxes_removed == 0);
  CHECK(bed.cri().is_running(pod));

  v1::StopContainerRequest stop;
  stop.set_container_id(pod.container());
  bed.cri().calls().ask<v1::StopContainerResponse>(stop);
  const auto removed = reclaim(bed, true, true);
  CHECK(errors(removed) == "");
  CHECK(containers(bed).empty());
  CHECK(sandboxes(bed).empty());
  CHECK(images(bed) == Names{pause_image});
}

TEST_SUITE_BEGIN("image volumes");

TEST_CASE("an image that a container has mounted as a volume stays until the container is gone") {
  Testbed bed;
  for (const auto* name : {"evictd.test/idle:1", "evictd.test/volume:1"}) bed.containerd().import_image(name, 1 * MiB);
  ContainerSpec container{.args = {"hold", "1Mi"}};
  container.mounts.push_back(
      {.container_path = "/volume", .readonly = true, .image = id_of_image(bed, "evictd.test/volume:1")});
  const auto pod = bed.cri().run_pod({.name = "reader", .containers = {container}});

  CHECK(errors(reclaim(bed, false, true)) == "");
  CHECK(images(bed) == Names{load, pause_image, "evictd.test/volume:1"});
  CHECK(bed.cri().is_running(pod));

  bed.cri().stop(pod, 0s);
  CHECK(errors(reclaim(bed, false, true)) == "");
  CHECK(images(bed) == Names{load, pause_image, "evictd.test/volume:1"});  // a kubelet might start it again
  CHECK(errors(reclaim(bed, true, true)) == "");
  CHECK(images(bed) == Names{pause_image});
}

TEST_SUITE_END();

}  // namespace integration::node_reclaim_test
