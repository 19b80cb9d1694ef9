// evictd beside a kubelet whose configuration it has to find. The kubelet is a stand-in: a process of that name, which
// has a kubelet's flags and does nothing. A real one is in tests/kubernetes.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evictctl.hpp"
#include "hostile/served_disk.hpp"
#include "kube/api_server.hpp"
#include "stopped.hpp"
#include "support/skip.hpp"
#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/files.hpp"
#include "testbed/kubelet_turn.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::kubelet_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t mebi = 1 << 20;
/// One on which programs called kubelet may run.
struct KubeletNode final : Testbed {
  KubeletNode() : Testbed{{.node = {.memory_limit = 1024 * mebi}}} {}
  const testbed::KubeletTurn turn;
};
const std::vector<std::string> wide{"env", "COLUMNS=250"};  // so that a place stands in one line

std::string document(const std::string& fields) {
  return "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + fields + "\n";
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  testbed::replace_file(file, text);
}

/// Starts a process of this name, which waits for a word that never comes. `before`: what starts it.
testbed::Process start(Testbed& testbed, const std::string& name, const std::vector<std::string>& flags,
                       std::vector<std::string> before = {}) {
  const auto script = testbed.directory() / name;
  const auto word = testbed.directory() / "word";
  testbed::replace_file(script, "#!/bin/bash\nread -r _ <\"$1\"\n");
  fs::permissions(script, fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  if (!fs::exists(word)) REQUIRE(::mkfifo(word.c_str(), 0644) == 0);
  before.insert(before.end(), {script, word});
  before.insert(before.end(), flags.begin(), flags.end());
  auto process = testbed.spawn(before);
  testbed::wait_until("it is called " + name, 30s,
                      [&] { return testbed::read_file(fmt::format("/proc/{}/comm", process.pid())) == name + '\n'; });
  return process;
}

std::string hard_memory(const Agent& agent) {
  const auto status = agent.status();
  for (const auto& signal : status.signals())
    if (signal.signal() == "memory.available" && signal.thresholds_size() == 1)
      return signal.thresholds(0).threshold().value();
  return "none";
}

void wait_for_threshold(const Agent& agent, const std::string& value) {
  testbed::wait_until("memory.available<" + value, 60s, [&] { return hard_memory(agent) == value; });
}

bool warns(const Agent& agent, std::string_view words) {
  const auto status = agent.status();
  return std::ranges::any_of(status.warnings(),
                             [&](const auto& warning) { return warning.find(words) != std::string::npos; });
}

/// A pod that the defaults would evict on a node of 1 GiB.
testbed::RunningPod start_hog(Testbed& testbed) {
  return testbed.cri().run_pod(
      {.name = "hog", .qos = QosClass::BestEffort, .containers = {{.args = {"hold", "950Mi"}}}});
}

}  // namespace

TEST_CASE(
    "the thresholds are those of the kubelet that runs: its file, its drop-ins and its flags, and as they change") {
  KubeletNode testbed;
  const auto file = testbed.directory() / "config.yaml";
  const auto drop_ins = testbed.directory() / "kubelet.conf.d";
  write(file, document("evictionHard: {memory.available: 110Mi}"));
  write(drop_ins / "10.conf", document("evictionHard: {memory.available: 120Mi}"));
  REQUIRE(::mkfifo((drop_ins / "15.conf").c_str(), 0600) == 0);
  // A user's process of that name is nobody's kubelet.
  const auto liar = start(testbed, "kubelet", {"--eviction-hard=memory.available<95%"},
                          {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  const std::vector<std::string> flags{"--config=" + file.native(), "--config-dir=" + drop_ins.native()};
  std::optional<testbed::Process> kubelet{start(testbed, "kubelet", flags)};
  Agent agent{testbed, {.thresholds = "", .find_kubelet = true}};
  CHECK_FALSE(agent.status().dry_run());
  CHECK(hard_memory(agent) == "120Mi");
  const auto shown = run_evictctl(testbed, {"--address", agent.address(), "thresholds", "get"}, wide).out;
  CHECK_MESSAGE(shown.find((drop_ins / "10.conf").native() + ":3") != std::string::npos, shown);
  const auto status = run_evictctl(testbed, {"--address", agent.address(), "status"}, wide).out;
  CHECK_MESSAGE(status.find("config.yaml") != std::string::npos, status);

  testbed::replace_file(drop_ins / "20.conf", document("evictionHard: {memory.available: 130Mi}"));
  wait_for_threshold(agent, "130Mi");

  // Another kubelet, whose flags say something else, and its file lies elsewhere.
  kubelet.reset();
  const auto other = testbed.directory() / "other/config.yaml";
  write(other, document("evictionSoft: {memory.available: 150Mi}\nevictionSoftGracePeriod: {memory.available: 1h}"));
  kubelet.emplace(start(testbed, "kubelet", {"--config=" + other.native(), "--eviction-hard=memory.available<140Mi"}));
  testbed::wait_until("both are in force", 60s, [&] {
    const auto set = run_evictctl(testbed, {"--address", agent.address(), "thresholds", "get"}, wide).out;
    return set.find(fmt::format("the flags of kubelet (pid {})", kubelet->pid())) != std::string::npos &&
           set.find(other.native() + ":3") != std::string::npos;
  });
  testbed::replace_file(other, document("evictionHard: {memory.available: 1Mi}"));  // the flag wins
  testbed::wait_until("the soft one is gone", 60s, [&] { return hard_memory(agent) == "140Mi"; });
}

TEST_CASE("beside a kubelet whose configuration cannot be found nothing is evicted, and that is said") {
  KubeletNode testbed;
  const auto kubelet = start(testbed, "kubelet", {"--config=/nowhere/kubelet.yaml"});
  Agent agent{testbed, {.thresholds = "", .find_kubelet = true}};
  CHECK(agent.status().dry_run());
  CHECK(warns(agent, "nothing is evicted, as with --dry-run"));
  agent.process().wait_until_says(
      "has its configuration in /nowhere/kubelet.yaml, which is not there; name its configuration with "
      "--kubelet-config");

  // By the kubelet's defaults it would have to go.
  const auto hog = start_hog(testbed);
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 60s);
  CHECK(intended.eviction_intended().dry_run());
  CHECK(testbed.cri().is_running(hog));
}

TEST_CASE("a kubelet that starts after evictd holds evictd back until its configuration is found") {
  KubeletNode testbed;
  const auto file = testbed.directory() / "config.yaml";
  // This kubelet removes no cgroup.
  Agent agent{testbed, {.thresholds = "", .eviction = "cleanupTimeout: 5s", .find_kubelet = true}};
  REQUIRE_FALSE(agent.status().dry_run());
  const auto kubelet = start(testbed, "kubelet", {"--config=" + file.native()});
  testbed::wait_until("evictd only watches", 90s, [&] { return agent.status().dry_run(); });
  const auto small =
      testbed.cri().run_pod({.name = "small", .qos = QosClass::BestEffort, .containers = {{.args = {"hold", "16Mi"}}}});
  agent.wait_for_pods(1);
  const auto hog = start_hog(testbed);
  CHECK(agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 60s).eviction_intended().dry_run());
  CHECK(testbed.cri().is_running(hog));
  // So long that it is not waited for any more, as for a pod that an eviction did not end.
  agent.events().wait_for(Event::EVICTION_INTENDED, "default/small", 60s);

  // What it was only said of goes now, and not another one in its place; and nothing is only said any more.
  testbed::replace_file(file, document("evictionHard: {memory.available: 200Mi}"));
  testbed::wait_until("evictd acts", 90s, [&] { return !agent.status().dry_run(); });
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);
  CHECK_FALSE(testbed.cri().is_running(hog));
  CHECK(testbed.cri().is_running(small));
  CHECK_FALSE(warns(agent, "nothing is evicted"));
  bool acts = false;
  for (const auto& event : agent.events().all()) {
    acts = acts || event.message().starts_with("thresholds changed");
    if (acts && event.kind() == Event::EVICTION_INTENDED) CHECK_FALSE(event.eviction_intended().dry_run());
  }
  CHECK(acts);

  // It goes on by what it was started with.
  fs::remove(file);
  testbed::wait_until("it is said that the file is gone", 90s, [&] { return warns(agent, "which is not there"); });
  CHECK_FALSE(agent.status().dry_run());
  CHECK(hard_memory(agent) == "200Mi");
}

TEST_CASE(
    "where a kubelet runs an evicted pod's cgroup is its own to remove: the cleanup waits, the next pod does not") {
  KubeletNode testbed;
  const auto file = testbed.directory() / "config.yaml";
  write(file, document("evictionHard: {memory.available: 200Mi}"));
  const auto kubelet = start(testbed, "kubelet", {"--config=" + file.native()});
  Agent agent{testbed, {.thresholds = "", .eviction = "cleanupTimeout: 5m", .find_kubelet = true}};
  const auto hog = start_hog(testbed);
  agent.events().wait_for(Event::CONTAINERS_KILLED, "default/hog", 60s);
  testbed::wait_until("nothing but the cgroup is left", 60s, [&] { return nothing_left(testbed, hog); });
  const auto next =
      testbed.cri().run_pod({.name = "next", .qos = QosClass::BestEffort, .containers = {{.args = {"hold", "950Mi"}}}});
  agent.events().wait_for(Event::CONTAINERS_KILLED, "default/next", 60s);
  testbed::wait_until("nothing but its cgroup is left", 60s, [&] { return nothing_left(testbed, next); });
  CHECK_FALSE(agent.events().has(Event::CLEANUP_DONE, "default/hog"));
  CHECK(agent.status().in_flight_size() == 2);
  for (const auto& gone : {hog, next}) {
    CHECK(fs::exists(testbed.node().memory_directory(gone.cgroup)));
    testbed::remove_cgroups(gone.cgroup.substr(1));
  }
  for (const auto* pod : {"default/hog", "default/next"})
    CHECK_FALSE(agent.events().wait_for(Event::CLEANUP_DONE, pod, 60s).cleanup_done().timed_out());
}

TEST_CASE(
    "k3s: thresholds come from its drop-ins and from the service that starts it, since it hides its command line") {
  KubeletNode testbed;
  const auto tree = testbed.directory() / "tree";
  write(tree / "lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf",
        document("evictionHard: {imagefs.available: 5%, nodefs.available: 5%}"));
  write(tree / "systemd/system/k3s.service",
        "[Service]\nExecStart=/usr/local/bin/k3s \\\n  server \\\n"
        "\t'--kubelet-arg=eviction-hard=memory.available<160Mi' \\\n\n");
  const auto k3s = start(testbed, "k3s-server", {});
  const auto service = testbed.node().memory_directory() / "k3s.service";
  fs::create_directory(service);
  testbed::write_file(service / "cgroup.procs", std::to_string(k3s.pid()));
  Agent agent{
      testbed,
      {.thresholds = "",
       .find_kubelet = true,
       .wrapper = {"unshare", "--mount", "bash", "-euc",
                   "mount --bind \"$1/lib\" /var/lib; mount --bind \"$1/systemd\" /etc/systemd; shift; exec \"$@\"",
                   "wrapper", tree}}};
  CHECK_FALSE(agent.status().dry_run());
  CHECK(hard_memory(agent) == "160Mi");
  const auto shown = run_evictctl(testbed, {"--address", agent.address(), "thresholds", "get"}, wide).out;
  CHECK_MESSAGE(shown.find(fmt::format("the flags of k3s (pid {})", k3s.pid())) != std::string::npos, shown);
}

TEST_CASE("a disk that hangs with the kubelet's file on it holds up neither evictd's start nor its end") {
  SKIP_UNLESS(ServedDisk::possible(), "no /dev/fuse");
  const ServedDisk disk;
  KubeletNode testbed;
  const auto file = disk.file("kubelet/config.yaml", document("evictionHard: {memory.available: 170Mi}"));
  const auto kubelet = start(testbed, "kubelet", {"--config=" + file.native()});
  {
    const Stopped hung{disk.server()};
    Agent agent{testbed, {.thresholds = "", .find_kubelet = true}};
    CHECK(agent.status().dry_run());
    CHECK(warns(agent, "a disk does not answer"));
    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(20s) == 0);
  }
  std::optional<Stopped> hung{disk.server()};
  Agent agent{testbed, {.thresholds = "", .find_kubelet = true}};
  CHECK(agent.status().dry_run());
  hung.reset();
  testbed::wait_until("evictd acts", 90s, [&] { return !agent.status().dry_run(); });
  CHECK(hard_memory(agent) == "170Mi");
}

TEST_CASE("a kubelet that is asked says its thresholds; while it says nothing, nothing is evicted") {
  KubeletNode testbed;
  evictd::test::ApiServer kubelet;
  kubelet.otherwise([](auto& exchange) { exchange.hold(); });
  Agent agent{testbed,
              {.thresholds = "",
               .threshold_changes = "configz: true",
               .sections = fmt::format("podSources: {{kubelet: {{url: \"{}\"}}}}\n", kubelet.url()),
               .find_kubelet = true}};
  CHECK(agent.status().dry_run());
  CHECK(warns(agent, kubelet.url()));
  kubelet.otherwise([](auto& exchange) {
    if (exchange.asked().target == "/configz")
      exchange.answer(200, R"({"kubeletconfig": {"evictionHard": {"memory.available": "180Mi"}}})");
    else
      exchange.answer(200, R"({"kind": "PodList", "apiVersion": "v1", "items": []})");
  });
  testbed::wait_until("evictd acts", 90s, [&] { return !agent.status().dry_run(); });
  CHECK(hard_memory(agent) == "180Mi");
  const auto shown = run_evictctl(testbed, {"--address", agent.address(), "thresholds", "get"}, wide).out;
  CHECK_MESSAGE(shown.find(kubelet.url() + "/configz") != std::string::npos, shown);
}

}  // namespace integration::kubelet_test
