#include "evictctl/answers.hpp"

#include <doctest/doctest.h>

#include <sstream>

namespace evictd::ctl::status_table_test {
namespace {

using namespace std::chrono_literals;

const TimePoint now{1'000'000s};

void set(google::protobuf::Timestamp& time, std::chrono::seconds before) {
  time.set_seconds((now.time_since_epoch() - before) / 1s);
}

v1::ThresholdStatus& add_threshold(v1::SignalStatus& signal, const std::string& value) {
  auto& status = *signal.add_thresholds();
  status.mutable_threshold()->set_value(value);
  return status;
}

void add_latency(v1::NodeStatus& status, const char* name, const char* since, std::int64_t median) {
  auto& stage = *status.add_latencies();
  stage.set_signal("memory.available");
  stage.set_name(name);
  stage.set_since(since);
  stage.set_count(2);
  stage.set_median_us(median);
  stage.set_p90_us(10 * median);
  stage.set_max_us(1000 * median);
}

v1::NodeStatus busy_node() {
  v1::NodeStatus status;
  status.set_version("1.2.3");
  set(*status.mutable_started(), 3h + 12min);
  status.set_pods(3);
  status.set_passes(1234);
  status.set_evictions(2);
  status.set_last_event_sequence(57);
  auto& runtime = *status.mutable_runtime();
  runtime.set_endpoint("unix:///run/c.sock");
  runtime.set_connected(true);
  runtime.set_name("containerd");
  runtime.set_version("1.6.20");

  auto& pressure = *status.add_conditions();
  pressure.set_type("MemoryPressure");
  pressure.set_status(true);
  set(*pressure.mutable_since(), 130s);
  status.add_conditions()->set_type("DiskPressure");

  auto& memory = *status.add_signals();
  memory.set_signal("memory.available");
  memory.set_unit("bytes");
  memory.set_available(96780288);
  memory.set_capacity(1 << 30);
  set(*add_threshold(memory, "100Mi").mutable_met_since(), 3s);
  add_threshold(memory, "300Mi").mutable_threshold()->mutable_grace_period()->set_seconds(90);
  auto& inodes = *status.add_signals();
  inodes.set_signal("imagefs.inodesFree");
  inodes.set_unit("inodes");
  add_threshold(inodes, "5%");

  auto& memcg = *status.add_wake_sources();
  memcg.set_name("memcg");
  memcg.set_state("armed");
  memcg.set_detail("2 levels");
  memcg.set_arm_level_bytes(978321408);
  memcg.set_wake_ups(12);
  set(*memcg.mutable_last_wake(), 3s);
  auto& timer = *status.add_wake_sources();
  timer.set_name("timer");
  timer.set_state("off");

  auto& api_server = *status.add_pod_sources();
  api_server.set_name("apiServer");
  api_server.set_state("stale");
  api_server.set_pods(12);
  api_server.set_error("connection refused");
  set(*api_server.mutable_stale_since(), 130s);
  set(*api_server.mutable_last_contact(), 135s);
  auto& manifests = *status.add_pod_sources();
  manifests.set_name("manifests");
  manifests.set_state("waiting");

  auto& eviction = *status.add_in_flight();
  eviction.set_eviction_id(55);
  eviction.mutable_pod()->set_namespace_("default");
  eviction.mutable_pod()->set_name("bloat");
  eviction.set_bytes(734003200);
  set(*eviction.mutable_since(), 2s);

  add_latency(status, "decision", "wake_up", 310);
  add_latency(status, "first_release", "decision", 8'460);
  return status;
}

std::string print(const v1::NodeStatus& status, const TableLook& look = {}) {
  std::ostringstream out;
  print_status(out, status, look, now);
  return out.str();
}

TEST_CASE("a busy node is told on lines of 80 columns") {
  CHECK(print(busy_node()) ==
        "evictd    1.2.3, up 3h12m\n"
        "runtime   containerd 1.6.20, connected at unix:///run/c.sock\n"
        "counts    pods 3, passes 1234, evictions 2, last event 57\n"
        "\n"
        "CONDITION       STATUS  CHANGED\n"
        "MemoryPressure  True    2m10s ago\n"
        "DiskPressure    False   -\n"
        "\n"
        "SIGNAL              AVAILABLE   OF  EVICTS BELOW     MET\n"
        "memory.available       92.3Mi  1Gi  100Mi            3s ago\n"
        "                                    300Mi for 1m30s  -\n"
        "imagefs.inodesFree          -    -  5%               -\n"
        "\n"
        "WAKE SOURCE  ARMED AT  WAKE-UPS  LAST    STATE\n"
        "memcg           933Mi        12  3s ago  armed; 2 levels\n"
        "timer               -         0  never   off\n"
        "\n"
        "POD SOURCE  PODS  CONTACT    STATE\n"
        "apiServer     12  2m15s ago  stale for 2m10s; connection refused\n"
        "manifests      0  never      waiting\n"
        "\n"
        "EVICTION  BEGAN   EXPECTED  POD\n"
        "      55  2s ago     700Mi  default/bloat\n"
        "\n"
        "LATENCY OF        STAGE          SINCE     COUNT  MEDIAN     P90  MAX\n"
        "memory.available  decision       wake_up       2   310us   3.1ms  310ms\n"
        "                  first_release  decision      2  8.46ms  84.6ms  8.46s\n");
}

TEST_CASE("what the API server is told has a line of its own, with the error while it lasts") {
  v1::NodeStatus status;
  auto& reports = *status.mutable_cluster_reports();
  reports.set_statuses(3);
  reports.set_events(4);
  reports.set_last_error("timeout");
  set(*reports.mutable_last_success(), 5s);
  set(*reports.mutable_last_failure(), 6s);
  CHECK(print(status).ends_with("reports   0 waiting, 3 pods, 4 events, 0 node updates, 0 dropped\n"));
  reports.set_waiting(2);
  set(*reports.mutable_oldest(), 4s);
  set(*reports.mutable_last_failure(), 4s);
  CHECK(print(status).ends_with("reports   2 waiting for 4s, 3 pods, 4 events, 0 node updates, 0 dropped; timeout\n"));
}

TEST_CASE("how a shutdown of the node would go has a line of its own, with what is wrong") {
  v1::NodeStatus status;
  auto& shutdown = *status.mutable_shutdown();
  shutdown.set_state("ready");
  shutdown.mutable_inhibit_delay()->set_seconds(90);
  shutdown.mutable_grace_period()->set_seconds(30);
  CHECK(print(status).ends_with("shutdown  ready, waits at most 1m30s, pods may take 30s\n"));
  shutdown.set_state("failed");
  shutdown.clear_inhibit_delay();
  shutdown.set_error("no system bus");
  CHECK(print(status).ends_with("shutdown  FAILED, pods may take 30s; no system bus\n"));
}

TEST_CASE("an agent that knows nothing yet has a short status") {
  CHECK(print(v1::NodeStatus()) ==
        "evictd    -\n"
        "runtime   -\n"
        "counts    pods 0, passes 0, evictions 0, last event 0\n");
}

TEST_CASE("what an operator must not overlook is in capitals") {
  auto status = busy_node();
  status.set_dry_run(true);
  status.mutable_runtime()->set_connected(false);
  const auto text = print(status);
  CHECK(text.find("DRY RUN: nothing is evicted") != std::string::npos);
  CHECK(text.find("NOT CONNECTED at unix:///run/c.sock") != std::string::npos);
}

TEST_CASE("what is the matter with the thresholds is told while something is") {
  v1::NodeStatus status;
  status.set_thresholds_revision("8f3a");
  CHECK(print(status).ends_with("revision  8f3a of the thresholds, from the kubelet's defaults\n"));
  status.add_threshold_documents("/etc/kubelet.yaml");
  status.add_threshold_documents("/etc/evictd/thresholds.d/10.yaml");
  status.add_warnings("memory.available: 10Mi is below what the kernel keeps for itself (67Mi)");
  status.add_staged("memory.available: 100Mi -> 500Mi");
  CHECK(
      print(status).ends_with("last event 0\n"
                              "revision  8f3a of the thresholds, from /etc/kubelet.yaml,\n"
                              "          /etc/evictd/thresholds.d/10.yaml\n"
                              "warning   memory.available: 10Mi is below what the kernel keeps for itself\n"
                              "          (67Mi)\n"
                              "staged    memory.available: 100Mi -> 500Mi (held back, since it would evict at\n"
                              "          once)\n"));
}

TEST_CASE("pressure and met thresholds are red, what may become trouble is yellow, on a terminal alone") {
  auto status = busy_node();
  status.add_warnings("a warning");
  CHECK(print(status).find('\x1b') == std::string::npos);
  const auto text = print(status, {.paint = Paint{true}});
  const auto is_red = [&](const std::string& word) {
    return text.find("\x1b[1;31m" + word + "\x1b[0m") != std::string::npos;
  };
  CHECK(is_red("True"));
  CHECK_FALSE(is_red("False"));
  CHECK(is_red("92.3Mi"));
  CHECK(is_red("100Mi"));
  CHECK_FALSE(is_red("300Mi for 1m30s"));
  CHECK(text.find("\x1b[33ma warning\x1b[0m") != std::string::npos);
  CHECK(text.find("\x1b[33mstale for 2m10s; connection refused\x1b[0m") != std::string::npos);
}

TEST_CASE("a wide status has rates, what is left, minimum reclaims and uids") {
  auto status = busy_node();
  status.mutable_signals(0)->set_fill_rate(1 << 20);
  status.mutable_signals(0)->clear_thresholds();
  add_threshold(*status.mutable_signals(0), "10Mi").mutable_threshold()->set_resolved(10 << 20);
  status.mutable_signals(0)->mutable_thresholds(0)->mutable_threshold()->set_minimum_reclaim("5Mi");
  status.mutable_in_flight(0)->mutable_pod()->set_uid("abc");
  status.mutable_wake_sources(0)->set_rearms(77);
  status.mutable_wake_sources(0)->set_re_registrations(2);
  status.mutable_wake_sources(0)->set_missed(1);
  const auto text = print(status, {.width = 160, .wide = true});
  CHECK(text.find("SIGNAL              AVAILABLE   OF  EVICTS BELOW   RATE   LEFT  MIN RECLAIM  MET\n"
                  "memory.available       92.3Mi  1Gi  10Mi          1Mi/s  1m22s  5Mi          -\n"
                  "imagefs.inodesFree          -    -  5%                -      -  -            -\n") !=
        std::string::npos);
  CHECK(text.find("EXPECTED  UID  POD\n      55  2s ago     700Mi  abc  default/bloat\n") != std::string::npos);
  CHECK(text.find("LAST    RE-ARMED  STATE\nmemcg           933Mi        12  3s ago        77  armed") !=
        std::string::npos);
  CHECK(text.find("; registered anew 2x, missed 1\n") != std::string::npos);
}

TEST_CASE("no line is longer than the terminal, whatever pods and errors are called") {
  auto status = busy_node();
  status.mutable_in_flight(0)->mutable_pod()->set_name(std::string(253, 'n'));
  status.mutable_wake_sources(1)->set_state("failed: " + std::string(100, 'x') + " and more of it");
  status.mutable_wake_sources(1)->set_name("a-wake-source-with-a-rather-long-name for memory.available");
  status.mutable_signals(0)->set_signal("allocatableMemory.available");
  status.mutable_latencies(0)->set_signal("ephemeralcontainerfs.limit");
  for (const std::size_t width : {80, 60, 160})
    for (const bool wide : {false, true}) {
      CAPTURE(width);
      std::istringstream lines(print(status, {.width = width, .wide = wide}));
      for (std::string line; std::getline(lines, line);) CHECK(columns(line) <= width);
    }
}

}  // namespace
}  // namespace evictd::ctl::status_table_test
