// evictd beside a kubelet whose configuration it has to find. The kubelet is a stand-in: a process of that name, which
// has a kubelet's flags and does nothing. A real one is in tests/kubernetes.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace integration::kubelet_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

std::string document(const std::string& fields) {
  return "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + fields + "\n";
}

/// The script waits for a word that never comes.
testbed::Process start_kubelet(Testbed& testbed, std::vector<std::string> flags) {
  const auto script = testbed.directory() / "kubelet";
  const auto word = testbed.directory() / "word";
  testbed::replace_file(script, "#!/bin/bash\nread -r _ <\"$1\"\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  if (!std::filesystem::exists(word)) REQUIRE(::mkfifo(word.c_str(), 0600) == 0);
  std::vector<std::string> command{script, word};
  command.insert(command.end(), flags.begin(), flags.end());
  auto kubelet = testbed.spawn(command);
  testbed::wait_until("it is called a kubelet", 30s,
                      [&] { return testbed::read_file(fmt::format("/proc/{}/comm", kubelet.pid())) == "kubelet\n"; });
  return kubelet;
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

}  // namespace

TEST_CASE(
    "the thresholds are those of the kubelet that runs: its file, its drop-ins and its flags, and as they change") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto file = testbed.directory() / "config.yaml";
  const auto drop_ins = testbed.directory() / "kubelet.conf.d";
  std::filesystem::create_directory(drop_ins);
  testbed::replace_file(file, document("evictionHard: {memory.available: 110Mi}"));
  testbed::replace_file(drop_ins / "10.conf", document("evictionHard: {memory.available: 120Mi}"));
  const std::vector<std::string> flags{"--config=" + file.native(), "--config-dir=" + drop_ins.native()};
  std::optional<testbed::Process> kubelet{start_kubelet(testbed, flags)};
  Agent agent{testbed, {.thresholds = "", .find_kubelet = true}};
  CHECK_FALSE(agent.status().dry_run());
  CHECK(hard_memory(agent) == "120Mi");

  testbed::replace_file(drop_ins / "20.conf", document("evictionHard: {memory.available: 130Mi}"));
  wait_for_threshold(agent, "130Mi");

  // Another kubelet, whose flags say something else.
  kubelet.reset();
  kubelet.emplace(start_kubelet(testbed, {flags[0], flags[1], "--eviction-hard=memory.available<140Mi"}));
  wait_for_threshold(agent, "140Mi");
}

TEST_CASE("beside a kubelet whose configuration cannot be found nothing is evicted, and that is said") {
  Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  const auto kubelet = start_kubelet(testbed, {"--config=/nowhere/kubelet.yaml"});
  Agent agent{testbed, {.thresholds = "", .find_kubelet = true}};
  CHECK(agent.status().dry_run());
  const auto said = agent.process().errors();
  CHECK_MESSAGE(said.find("has its configuration in /nowhere/kubelet.yaml, which is not there; name its configuration "
                          "with --kubelet-config") != std::string::npos,
                said);

  // By the kubelet's defaults it would have to go.
  const auto hog =
      testbed.cri().run_pod({.name = "hog", .qos = QosClass::BestEffort, .containers = {{.args = {"hold", "950Mi"}}}});
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", 60s);
  CHECK(intended.eviction_intended().dry_run());
  CHECK(testbed.cri().is_running(hog));
}

}  // namespace integration::kubelet_test
