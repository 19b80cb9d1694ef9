// What pods were given has to be in allocations.json before they start.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "evictctl.hpp"
#include "os/file_descriptor.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/testbed.hpp"

namespace integration::allocations_test {

using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

constexpr std::int64_t mebi = 1 << 20;

/// An evictd that gives all CPUs but the first away. Its file is written beside its place, where the test can have
/// something in the way.
struct Node {
  Node() { REQUIRE(cpus >= 2); }

  [[nodiscard]] static testbed::Agent::Options options() {
    return {.thresholds =
                "evictionHard: {memory.available: 300Mi}\n"
                "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n",
            .keep_history = true};
  }
  /// Asks with --reserve. Of the same name it is the same pod.
  [[nodiscard]] Evictctl admit(const std::string& name, const std::string& resources) const {
    const auto file = testbed.directory() / "asked.yaml";
    testbed::replace_file(
        file, fmt::format("{{metadata: {{name: {}}}, spec: {{containers: [{{name: main, resources: {{{}}}}}]}}}}", name,
                          resources));
    return run_evictctl(testbed, {"--address", agent.address(), "admit", "-f", file, "--reserve"});
  }
  /// One that wants all CPUs that there are.
  [[nodiscard]] Evictctl admit_pinned(const std::string& name) const {
    return admit(name, fmt::format("limits: {{cpu: {}, memory: 64Mi}}", cpus - 1));
  }
  /// One that is given nothing for itself.
  [[nodiscard]] Evictctl admit_modest(const std::string& name) const { return admit(name, "requests: {memory: 1Mi}"); }
  [[nodiscard]] std::string rejection(const std::string& name) {
    return agent.events().wait_for(Event::ADMISSION_REJECTED, "default/" + name, 60s).message();
  }

  const unsigned cpus = std::thread::hardware_concurrency();
  testbed::Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
  testbed::Agent agent{testbed, options()};
  const std::filesystem::path next = testbed.directory() / "allocations.json.new";
};

}  // namespace

TEST_CASE("a pod is rejected where what it is given cannot be written, and others come in that are given nothing") {
  Node node;
  std::filesystem::create_directory(node.next);
  const auto answer = node.admit_pinned("pinned");
  CHECK_MESSAGE(answer.code == 1, answer.out << answer.err);
  CHECK(node.rejection("pinned") ==
        fmt::format("default/pinned is not admitted: UnexpectedAdmissionError: Allocate failed due to writing "
                    "what the pod was given: {}: cannot be written: Is a directory, which is unexpected",
                    (node.testbed.directory() / "allocations.json").native()));
  CHECK(node.admit_modest("modest").code == 0);
  std::filesystem::remove(node.next);
  CHECK(node.admit_pinned("next").code == 0);
}

TEST_CASE("a pod is rejected where the disk hangs that is to keep what it is given, and the next one comes in later") {
  Node node;
  // Whoever opens a pipe to write waits until somebody reads.
  REQUIRE(::mkfifo(node.next.c_str(), 0600) == 0);
  const auto answer = node.admit_pinned("pinned");
  CHECK_MESSAGE(answer.code == 1, answer.out << answer.err);
  CHECK(node.rejection("pinned") ==
        "default/pinned is not admitted: UnexpectedAdmissionError: Allocate failed due to writing what the pod was "
        "given, which took longer than 5s, which is unexpected");
  CHECK(node.admit_modest("modest").code == 0);
  const evictd::os::FileDescriptor reader{::open(node.next.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  REQUIRE(reader);
  const auto next = node.admit_pinned("next");
  CHECK_MESSAGE(next.code == 0, next.out << next.err);
}

}  // namespace integration::allocations_test
