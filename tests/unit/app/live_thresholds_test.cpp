#include "app/live_thresholds.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/running_server.hpp"
#include "app/configuration.hpp"
#include "app/live_thresholds_node.hpp"
#include "app/place_watch.hpp"
#include "async/side_thread.hpp"
#include "config/yaml.hpp"
#include "fixture/captured_log.hpp"
#include "fixture/result.hpp"
#include "os/file_descriptor.hpp"
#include "os/log.hpp"

namespace evictd::app::live_thresholds_test {
namespace {

/// A file on a disk that hangs: who opens it to write into it waits until this ends, and then fails and removes it.
class HangingFile {
 public:
  explicit HangingFile(std::string path) : path_{std::move(path)} { REQUIRE(::mkfifo(path_.c_str(), 0600) == 0); }
  HangingFile(const HangingFile&) = delete;
  HangingFile& operator=(const HangingFile&) = delete;
  ~HangingFile() {
    const os::FileDescriptor reader{::open(path_.c_str(), O_RDWR | O_CLOEXEC)};
    CHECK(test::eventually([this] { return !std::filesystem::exists(path_); }));
  }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("a file that is named and could not be read in time is looked for again, and then evictd acts by it") {
  Node node{Kubelet::Named, "a disk does not answer"};
  CHECK_FALSE(node.acts());
  node.runs_short();
  CHECK(node.loop.did("intend a"));
  CHECK_FALSE(node.has_evicted());

  node.files.kubelet_says("2Gi");  // nobody tells of it: that a disk answers again is no change of a file
  REQUIRE(node.comes_to([&] { return node.acts(); }));
  CHECK(node.in_force() == "memory.available<2Gi");
  REQUIRE(node.loop.stopper.begun.size() == 1);
  CHECK(node.loop.stopper.begun.front().uid == "a");
}

TEST_CASE("what was decided while evictd only watched is done once it acts, also where the thresholds are the same") {
  Node node{Kubelet::Named, "a disk does not answer"};
  node.runs_short();
  CHECK_FALSE(node.has_evicted());
  node.files.kubelet_says("1Gi");
  node.thresholds.files_changed();
  REQUIRE(node.comes_to([&] { return node.acts(); }));
  CHECK(node.in_force() == "memory.available<1Gi");
  CHECK(node.loop.stopper.begun.size() == 1);
}

TEST_CASE("while a kubelet runs of which it cannot be told what it goes by, nobody is evicted") {
  Node node{Kubelet::LookedFor};
  REQUIRE(node.acts());
  node.files.kubelet_runs(true);
  node.thresholds.files_changed();
  REQUIRE(node.comes_to([&] { return !node.acts(); }));
  CHECK(node.status().warnings(0).starts_with("nothing is evicted, as with --dry-run"));
  node.runs_short();
  CHECK_FALSE(node.has_evicted());

  node.files.kubelet_runs(false);
  node.thresholds.files_changed();
  REQUIRE(node.comes_to([&] { return node.acts(); }));
  CHECK(node.loop.stopper.begun.size() == 1);
  CHECK(node.in_force() == "memory.available<1Gi");
}

TEST_CASE("files that cannot be used leave evictd as it was: it acts by what was in force") {
  Node node{Kubelet::Named};
  node.files.write("agent.yaml", "nonsense: [\n");
  node.thresholds.files_changed();
  REQUIRE(node.comes_to([&] { return !node.status().warnings().empty(); }));
  CHECK(node.status().warnings(0).starts_with("the configuration is refused, and the old one stays: "));
  CHECK(node.acts());
  node.runs_short();
  CHECK(node.has_evicted());
}

TEST_CASE("files that change while they are read are read once more") {
  Node node{Kubelet::Named};
  node.thresholds.files_changed();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // they are read by now; the reactor has yet to hear
  node.files.kubelet_says("3Gi");
  node.thresholds.files_changed();
  REQUIRE(node.comes_to([&] { return node.in_force() == "memory.available<3Gi"; }));
}

TEST_CASE("what changes in evictd's own file is told, and the log's level taken over, also while evictd only watches") {
  Node node{Kubelet::LookedFor};
  node.files.kubelet_runs(true);
  node.thresholds.files_changed();
  REQUIRE(node.comes_to([&] { return !node.acts(); }));
  const auto told = [](const std::string& change) {
    return "the configuration changed: " + change + "; all but log.level takes effect when evictd restarts";
  };
  node.files.log_level = "warn";
  REQUIRE(node.reads_files());
  CHECK(node.changes_told() == std::vector{told("cri.timeout: 10s -> 11s; log.level: info -> warn")});
  {
    const fixture::CapturedLog log;
    os::log_info("of no interest");
    CHECK(log.lines().empty());
  }

  node.files.kubelet_ends();  // it may come back, and evictd still only watches
  node.files.log_level = "info";
  REQUIRE(node.reads_files());
  CHECK_FALSE(node.acts());
  CHECK(node.changes_told().back() == told("cri.timeout: 11s -> 12s; log.level: warn -> info"));
  const fixture::CapturedLog log;
  os::log_info("of interest");
  CHECK(log.lines() == std::vector<std::string>{"of interest"});
}

TEST_CASE("a dry run goes on with the thresholds of the last run, and is none for the next start") {
  const auto machine = std::make_shared<Files>(Kubelet::Named);
  const auto kept = [&] { return value_of(config::read_text_file(machine->path("state/thresholds.yaml"))); };
  {
    Node node{machine};
    REQUIRE(node.comes_to([&] { return std::filesystem::exists(machine->path("state/thresholds.yaml")); }));
  }
  const auto before = kept();
  CHECK(before.find("1Gi") != std::string::npos);
  machine->kubelet_says("2Gi");
  {
    Node dry{machine, {}, true};
    CHECK(dry.in_force() == "memory.available<2Gi");
    machine->kubelet_says("3Gi");
    dry.thresholds.files_changed();
    REQUIRE(dry.comes_to([&] { return dry.in_force() == "memory.available<3Gi"; }));
  }
  CHECK(kept() == before);
  machine->kubelet_says("5Gi");
  Node held_back{machine, {}, true};  // 4 GiB are available
  CHECK(held_back.in_force() == "memory.available<1Gi");
}

TEST_CASE("a kubelet that comes, goes and comes again is no change of what the configuration leaves to be found") {
  Node node{Kubelet::LookedFor};
  node.files.kubelet_runs(false, "c.sock");
  REQUIRE(node.reads_files());
  node.files.kubelet_ends();
  REQUIRE(node.reads_files());
  node.files.kubelet_runs(false, "c.sock");
  REQUIRE(node.reads_files());
  const auto told = [](const std::string& change) {
    return "the configuration changed: cri.timeout: " + change +
           "; all but log.level takes effect when evictd restarts";
  };
  CHECK(node.changes_told() == std::vector<std::string>{told("10s -> 11s"), told("11s -> 12s"), told("12s -> 13s")});
}

TEST_CASE("another runtime than the one in use that a kubelet names is told of, and its gaps and other names are not") {
  Node node{Kubelet::LookedFor};
  node.files.write("c.sock", "");
  node.files.write("other.sock", "");
  std::filesystem::create_symlink("c.sock", node.files.path("other_name.sock"));
  auto start = node.configuration;
  start.agent.cri.endpoint = node.files.endpoint("c.sock");
  start.guesses = {};
  std::vector<std::string> moved;
  const auto reactor = node.loop.reactor.get_executor();
  PlaceWatch places{reactor, std::make_shared<async::SideThread>(reactor, "places"), start,
                    [&](const std::string& what) { moved.push_back(what); }};
  node.thresholds.tell(places);

  node.files.kubelet_runs(false, "other_name.sock");
  REQUIRE(node.reads_files());
  node.files.kubelet_ends();
  REQUIRE(node.reads_files());
  node.files.kubelet_runs(false, "other.sock");
  REQUIRE(node.reads_files());
  REQUIRE(node.comes_to([&] { return !moved.empty(); }));
  REQUIRE(node.reads_files());
  REQUIRE(moved.size() == 1);
  CHECK(moved.front().starts_with("cri.endpoint is " + node.files.endpoint("other.sock") + " by now, and not " +
                                  node.files.endpoint("other_name.sock") + ", "));
}

TEST_CASE("beside a kubelet that comes and goes evictd ends once for the runtime that its flags name, and no more") {
  const auto machine = std::make_shared<Files>(Kubelet::LookedFor);
  machine->write("own.sock", "");
  std::vector<std::string> moved;
  for (int start = 1; start <= 3; ++start) {
    CAPTURE(start);
    machine->agent_says("10s");
    Node node{machine};  // while the kubelet is away
    CHECK((node.configuration.agent.cri.endpoint == machine->endpoint("own.sock")) == (start > 1));
    const auto reactor = node.loop.reactor.get_executor();
    PlaceWatch places{reactor, std::make_shared<async::SideThread>(reactor, "places"), node.configuration,
                      [&](const std::string& what) { moved.push_back(what); }};
    node.thresholds.tell(places);
    machine->kubelet_runs(false, "own.sock");
    REQUIRE(node.reads_files());
    if (start == 1) REQUIRE(node.comes_to([&] { return !moved.empty(); }));
    node.loop.reactor.run_for(std::chrono::milliseconds(20));
    machine->kubelet_ends();
    REQUIRE(node.reads_files());
  }
  CHECK(moved.size() == 1);
}

TEST_CASE("what a kubelet says while evictd starts is known to the next evictd as well, until one says otherwise") {
  const auto machine = std::make_shared<Files>(Kubelet::LookedFor);
  machine->write("own.sock", "");
  const auto own = machine->endpoint("own.sock");
  const auto found = [&] { return value_of(load_configuration(machine->names)).agent.cri.endpoint; };
  machine->kubelet_runs(false, "own.sock");
  {
    const Node node{machine};
  }
  machine->kubelet_ends();
  CHECK(found() == own);
  {
    const Node node{machine};
  }  // which hears of no kubelet
  CHECK(found() == own);
  machine->kubelet_runs(false);
  {
    const Node node{machine};
  }
  machine->kubelet_ends();
  CHECK(found() != own);
}

TEST_CASE("a file that the operator names is not what a kubelet has named") {
  const auto machine = std::make_shared<Files>(Kubelet::LookedFor);
  machine->write("own.sock", "");
  machine->kubelet_runs(false, "own.sock");
  {
    const Node node{machine};
  }
  machine->kubelet_ends();
  const auto looked_for = machine->names;
  machine->names.kubelet = machine->path("kubelet.yaml").native();
  {
    Node named{machine};
    REQUIRE(named.reads_files());
  }
  CHECK(value_of(load_configuration(looked_for)).agent.cri.endpoint == machine->endpoint("own.sock"));
}

TEST_CASE("another directory of drop-ins takes a restart, and what is saved until then is not lost") {
  const auto machine = std::make_shared<Files>(Kubelet::Named);
  machine->drop_in_says("a.d", "2Gi");
  machine->drop_in_says("b.d", "3Gi");
  const auto a = machine->path("a.d").native();
  const auto b = machine->path("b.d").native();
  machine->drop_ins = a;
  machine->agent_says("10s");
  Node node{machine};
  REQUIRE(node.in_force() == "memory.available<2Gi");

  machine->drop_ins = b;
  machine->agent_says("10s");
  node.thresholds.files_changed();
  REQUIRE(node.comes_to([&] { return !node.changes_told().empty(); }));
  CHECK(node.changes_told() == std::vector{"the configuration changed: thresholds.dropIns: " + a + " -> " + b +
                                           "; all but log.level takes effect when evictd restarts"});
  CHECK(node.in_force() == "memory.available<2Gi");

  v1::UpdateThresholdsRequest request;
  auto& change = *request.add_changes();
  change.set_signal("memory.available");
  change.set_value("4Gi");
  request.set_save(true);
  request.set_force(true);
  std::optional<api::Answer<v1::UpdateThresholdsResponse>> answer;
  node.thresholds.update_thresholds(request, [&](auto given) { answer = std::move(given); });
  REQUIRE(node.comes_to([&] { return answer.has_value(); }));
  REQUIRE(answer->has_value());
  CHECK((*answer)->saved_to() == a + "/90-evictctl.yaml");
  REQUIRE(node.reads_files());
  CHECK(node.in_force() == "memory.available<4Gi");
}

TEST_CASE("a stateDirectory whose disk hangs keeps no file from being read") {
  Node node{Kubelet::Named};
  const auto state = node.files.path("state/thresholds.yaml");
  REQUIRE(node.comes_to([&] { return std::filesystem::exists(state); }));
  const HangingFile hanging{state.native() + ".new"};
  v1::UpdateThresholdsRequest request;
  auto& change = *request.add_changes();
  change.set_signal("pid.available");
  change.set_value("100");
  bool is_done = false;
  node.thresholds.update_thresholds(request, [&](const auto& answer) { is_done = answer.has_value(); });
  REQUIRE(is_done);

  node.files.kubelet_says("2Gi");
  node.thresholds.files_changed();
  CHECK(node.comes_to([&] { return node.in_force() == "memory.available<2Gi"; }));
}

TEST_CASE("what is put back to what evictd started with takes no restart") {
  Node node{Kubelet::Named};
  const auto tells = [&](const std::string& cri_timeout) {
    const auto before = node.changes_told().size();
    node.files.agent_says(cri_timeout);
    node.thresholds.files_changed();
    REQUIRE(node.comes_to([&] { return node.changes_told().size() > before; }));
    return node.changes_told().back();
  };
  const std::string restart = "; all but log.level takes effect when evictd restarts";
  CHECK(tells("20s") == "the configuration changed: cri.timeout: 10s -> 20s" + restart);
  node.files.log_level = "warn";
  CHECK(tells("20s") == "the configuration changed: log.level: info -> warn");
  node.files.log_level = "info";
  CHECK(tells("10s") == "the configuration changed: cri.timeout: 20s -> 10s; log.level: warn -> info");
}

}  // namespace evictd::app::live_thresholds_test
