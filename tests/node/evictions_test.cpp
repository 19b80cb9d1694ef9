// Evictions on a node whose cgroups are systemd's.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "node.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace node_suite::evictions_test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using Lines = std::vector<std::string>;

namespace {

/// An emptyDir of a pod that is to be, mounted at /data; it goes with this object.
struct EmptyDir {
  testbed::PodSpec spec;
  fs::path pod_directory;
  fs::path volume = pod_directory / "volumes/kubernetes.io~empty-dir/scratch";

  EmptyDir(const std::string& name, const std::string& uid, std::vector<std::string> load)
      : spec{pod(name, QosClass::BestEffort, std::move(load))}, pod_directory{"/var/lib/kubelet/pods/" + uid} {
    fs::create_directories(volume);
    testbed::make_users_directory(volume / "own");
    spec.uid = uid;
    spec.containers[0].mounts.push_back({.host_path = volume, .container_path = "/data"});
  }
  ~EmptyDir() { fs::remove_all(pod_directory); }
};

/// Runs the pod, which takes what is short, until nothing is left of it. `neighbour` has to run on.
void check_eviction(Node& node, const testbed::PodSpec& spec, const testbed::RunningPod& neighbour,
                    const std::string& signal) {
  const auto name = spec.name_space + "/" + spec.name;
  const auto hog = node.run(spec);
  const auto intended = node.events().wait_for(Event::EVICTION_INTENDED, name, 120s);
  CHECK(intended.signal() == signal);
  const auto done = node.events().wait_for(Event::CLEANUP_DONE, name, 120s);
  CHECK_FALSE(done.cleanup_done().timed_out());
  CHECK(Node::left_of(hog) == "");
  CHECK(node.cri().is_running(neighbour));
  CHECK_FALSE(node.events().has(Event::EVICTION_INTENDED, "default/" + neighbour.name));
  CHECK_FALSE(node.events().has(Event::EVICTION_FAILED, name));
}

}  // namespace

TEST_CASE("a pod that takes the node's memory is evicted, its neighbours run on, and nothing of it is left") {
  Node node;
  const auto chill = node.run(pod("chill", QosClass::Burstable, {"hold", "32Mi"}));
  node.set_thresholds(
      fmt::format("evictionHard: {{memory.available: {}Mi}}", node.available("memory.available") / mebi - 300));
  check_eviction(node, pod("hog", QosClass::BestEffort, {"grow", "16Mi", "50Mi/s", "600Mi"}), chill,
                 "memory.available");

  // The real journald has it, and tells of it by evictd's catalog.
  const Lines match{"MESSAGE_ID=43fd61b8e6b448189951dc079307fbce", "EVICTD_POD=default/hog"};
  const auto journal_with = [&](Lines arguments) {
    arguments.insert(arguments.end(), match.begin(), match.end());
    return journal(arguments);
  };
  testbed::wait_until("the journal has the eviction", 60s,
                      [&] { return journal_with({"--output=json"}).contains("EVICTD_POD_UID"); });
  const auto fields = journal_with({"--output=json"});
  CHECK(fields.contains(R"("EVICTD_SIGNAL":"memory.available")"));
  const auto explained = journal_with({"--catalog"});
  CHECK(explained.contains("evictd evicted the pod default/hog"));
  CHECK(explained.contains("had to leave the node"));
}

TEST_CASE("a soft threshold gives the pod its time, once its own grace period is over") {
  Node node;
  const auto chill = node.run(pod("chill-soft", QosClass::Burstable, {"hold", "32Mi"}));
  node.set_thresholds(fmt::format(R"(evictionHard: {{memory.available: 64Mi}}
evictionSoft: {{memory.available: {}Mi}}
evictionSoftGracePeriod: {{memory.available: 2s}}
)",
                                  node.available("memory.available") / mebi - 200));
  check_eviction(node, pod("hog-soft", QosClass::BestEffort, {"hold", "300Mi"}), chill, "memory.available");
  const auto intended = node.events().wait_for(Event::EVICTION_INTENDED, "default/hog-soft", 1s);
  CHECK(intended.eviction_intended().grace_period_seconds() == 10);  // as the kubelet's configuration has it
}

TEST_CASE("a pod that takes the process ids is evicted") {
  Node node;
  const auto chill = node.run(pod("chill-pid", QosClass::Burstable, {"hold", "8Mi"}));
  node.set_thresholds(fmt::format("evictionHard: {{pid.available: {}}}", node.available("pid.available") - 150));
  check_eviction(node, pod("forks", QosClass::BestEffort, {"fork", "400"}), chill, "pid.available");
}

TEST_CASE("a pod that fills the disk is evicted") {
  Node node;
  const EmptyDir writer{"writer", "8a1d7d0e-0000-4000-8000-00000000000d", {"write", "/data", "400Mi", "40Mi/s"}};
  const auto chill = node.run(pod("chill-disk", QosClass::Burstable, {"hold", "8Mi"}));
  node.set_thresholds(
      fmt::format("evictionHard: {{nodefs.available: {}Mi}}", node.available("nodefs.available") / mebi - 150));
  check_eviction(node, writer.spec, chill, "nodefs.available");
  CHECK_FALSE(fs::exists(writer.volume));  // removed behind the unit's sandbox
}

TEST_CASE("a pod that takes the inodes is evicted") {
  Node node;
  const EmptyDir maker{"maker", "8a1d7d0e-0000-4000-8000-00000000001d", {"inodes", "/data", "6000"}};
  const auto chill = node.run(pod("chill-inode", QosClass::Burstable, {"hold", "8Mi"}));
  node.set_thresholds(
      fmt::format("evictionHard: {{nodefs.inodesFree: {}}}", node.available("nodefs.inodesFree") - 3000));
  check_eviction(node, maker.spec, chill, "nodefs.inodesFree");
}

TEST_CASE("a storm of daemon-reloads in the middle of an eviction disturbs neither it nor the service") {
  Node node;
  const auto chill = node.run(pod("chill-storm", QosClass::Burstable, {"hold", "16Mi"}));
  const auto pid = main_pid();
  node.set_thresholds(
      fmt::format("evictionHard: {{memory.available: {}Mi}}", node.available("memory.available") / mebi - 200));
  testbed::Process storm{{"sh", "-c", "for turn in 1 2 3 4 5 6 7 8 9 10; do systemctl daemon-reload; done"}};
  check_eviction(node, pod("hog-storm", QosClass::BestEffort, {"grow", "16Mi", "50Mi/s", "400Mi"}), chill,
                 "memory.available");
  CHECK(storm.wait(2min) == 0);
  CHECK(main_pid() == pid);
  CHECK(property("ActiveState") == "active");
}

}  // namespace node_suite::evictions_test
