// What could hold up the end of evictd: a disk that does not answer, a client that does not read.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "fixture/deaf_client.hpp"
#include "fixture/leased_file.hpp"
#include "kube/certificates.hpp"
#include "soon.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::ends_test {

using namespace std::chrono_literals;

namespace {

/// Opening it hangs, for nobody has its other end. It stands for a file on a disk that does not answer.
void make_hanging(const std::filesystem::path& path) {
  std::filesystem::create_directories(path.parent_path());
  const auto made = path.native() + ".made";
  REQUIRE(::mkfifo(made.c_str(), 0644) == 0);
  std::filesystem::rename(made, path);
}

/// The unit's TimeoutStopSec is 15 s.
constexpr auto longest_end = 14s;

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("while a disk hangs on which thresholds are saved, the hog goes, calls are answered and evictd ends") {
    integration::FaultScene scene;
    auto& agent = *scene.agent;
    const auto directory = scene.testbed.directory();
    make_hanging(directory / "thresholds.d/90-evictctl.yaml.new");
    const auto set = [&](const std::string& value, const std::vector<std::string>& more) {
      std::vector<std::string> command{
          testbed::evictctl_program(), "--address", "unix:" + (directory / "admin.sock").native(), "thresholds", "set",
          "memory.available=" + value};
      command.insert(command.end(), more.begin(), more.end());
      auto evictctl = scene.testbed.spawn(command);
      CHECK(evictctl.wait(30s).has_value());
      return evictctl.errors();
    };
    CHECK(set("200Mi", {"--save"}).contains("its disk did not take it within"));
    CHECK(set("250Mi", {"--save"}).contains("is still being written for an earlier change"));
    CHECK(set("310Mi", {}) == "");
    integration::expect_hog_goes_soon(scene);

    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(longest_end) == 0);
    CHECK(agent.process().errors().contains("it ends although something hangs: reading or writing thresholds"));
  }

  TEST_CASE("while a configuration hangs that is read again, the hog goes, status says so and evictd ends") {
    integration::FaultScene scene;
    auto& agent = *scene.agent;
    make_hanging(scene.testbed.directory() / "agent.yaml");
    testbed::wait_until("it is said that the configuration cannot be read", 30s, [&] {
      const auto status = agent.status();
      return std::ranges::any_of(status.warnings(), [](const std::string& line) {
        return line.contains("its files could not be read within 10 s");
      });
    });
    integration::expect_hog_goes_soon(scene);
    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(longest_end) == 0);
  }

  TEST_CASE("a client that does not read what it asked for does not hold up the end of evictd") {
    testbed::Testbed testbed{{.node = {.memory_limit = 1 << 30}, .containerd = {}, .start_containerd = false}};
    const auto plugins = testbed.directory() / "plugins";
    testbed::Agent agent{testbed,
                         {.thresholds = "evictionHard: {memory.available: 100Mi}",
                          .sections = fmt::format("devicePlugins: {{directory: {}}}\n", plugins.native()),
                          .wait_until_ready = false}};
    auto socket = testbed.directory() / "evictd.sock";
    std::string method = "/evictd.v1.EvictionService/GetNodeStatus";
    SUBCASE("of the API") {}
    SUBCASE("among the device plugins") {
      socket = plugins / "kubelet.sock";
      method = "/v1beta1.Registration/Register";
    }
    evictd::fixture::DeafClient client{socket};
    client.fill(method);
    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(longest_end) == 0);
    CHECK_FALSE(std::filesystem::exists(socket));
  }

  TEST_CASE("certificate files of api.tcp that hang do not hold up the end of evictd") {
    testbed::Testbed testbed{{.node = {.memory_limit = 1 << 30}, .containerd = {}, .start_containerd = false}};
    const auto path = [&](const char* name) { return testbed.directory() / name; };
    const evictd::test::Authority authority;
    const auto issued = authority.issue();
    testbed::replace_file(path("server.pem"), issued.certificate);
    testbed::replace_file(path("server.key"), issued.key);
    testbed::replace_file(path("ca.pem"), authority.certificate());
    testbed::Agent agent{
        testbed,
        {.thresholds = "evictionHard: {memory.available: 100Mi}",
         .sections = fmt::format("api: {{tcp: {{address: \"127.77.0.1:21443\", certificateFile: {}, keyFile: {}, "
                                 "clientCaFile: {}, readers: [\"*\"]}}}}\n",
                                 path("server.pem").native(), path("server.key").native(), path("ca.pem").native()),
         .wait_until_ready = false}};
    evictd::fixture::LeasedFile key{path("server.key")};
    testbed::wait_until("nobody reads the key", 60s, [&] { return key.take(); });
    testbed::wait_until("the key is read again", 60s, [&] { return key.has_reader(); });
    // It may be the configuration that is read again; gRPC looks every 5 s.
    std::this_thread::sleep_for(6s);
    agent.process().signal(SIGTERM);
    CHECK(agent.process().wait(longest_end) == 0);
    INFO(agent.process().errors());
    CHECK(agent.process().errors().contains("it ends although something hangs: "));
    CHECK(agent.process().errors().contains("gRPC, for the files of api.tcp"));
  }
}

}  // namespace integration::ends_test
