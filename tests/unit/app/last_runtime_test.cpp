#include "app/last_runtime.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "app/discovery.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::app::last_runtime_test {
namespace {

/// A machine's sockets and evictd's runtimeDirectory, which is not there yet.
struct Machine : fixture::Tree {
  Machine() { agent.runtime_directory = path("run/evictd"); }
  [[nodiscard]] std::string endpoint(const std::string& socket) const { return "unix://" + path(socket).native(); }
  [[nodiscard]] static kubelet::Configuration kubelet_of(const std::string& runtime) {
    kubelet::Configuration kubelet;
    kubelet.values.container_runtime_endpoint = runtime;
    kubelet.origins[std::string(endpoint_key)] = "the flags of kubelet (pid 812)";
    return kubelet;
  }
  /// What one that starts while no kubelet runs goes by; `file`: what a kubelet's file names then.
  [[nodiscard]] std::string recalled(const std::string& file = "file's") const {
    auto kubelet = kubelet_of(file);
    const bool is_recalled = recall_runtime(kubelet, agent);
    CHECK(is_recalled == (kubelet.origins.at(std::string(endpoint_key)) == "the kubelet that ran last"));
    return kubelet.values.container_runtime_endpoint;
  }

  config::AgentConfiguration agent{};
};

}  // namespace

TEST_CASE("the runtime that a kubelet named last is recalled, until one names another or none") {
  const Machine machine;
  machine.write("one.sock", "");
  machine.write("other.sock", "");
  CHECK(machine.recalled() == "file's");
  const auto one = machine.endpoint("one.sock");
  const auto other = machine.endpoint("other.sock");
  REQUIRE(keep_runtime(Machine::kubelet_of(machine.path("one.sock").native()), machine.agent));  // as MicroK8s has it
  CHECK(machine.recalled() == one);
  CHECK(machine.recalled(other) == one);  // that is what flags are for
  REQUIRE(keep_runtime(Machine::kubelet_of(other), machine.agent));
  CHECK(machine.recalled() == other);
  REQUIRE(keep_runtime({}, machine.agent));
  CHECK(machine.recalled() == "file's");
  REQUIRE(keep_runtime({}, machine.agent));
}

TEST_CASE("a runtime whose socket is not there is not recalled before it is") {
  const Machine machine;
  REQUIRE(keep_runtime(Machine::kubelet_of(machine.endpoint("own.sock")), machine.agent));
  CHECK(machine.recalled() == "file's");
  machine.write("own.sock", "");
  CHECK(machine.recalled() == machine.endpoint("own.sock"));
}

TEST_CASE("what is kept and is no endpoint is not there, and is written over") {
  const Machine machine;
  machine.write("own.sock", "");
  const auto file = config::runtime_files(machine.agent).kubelet_runtime;
  std::filesystem::create_directories(machine.agent.runtime_directory);
  for (const auto& content : {std::string{}, std::string{"\n"}, std::string{"tcp://10.0.0.1:2375\n"},
                              std::string{"own.sock\n"}, std::string(5000, '/'), std::string(200, '\0')}) {
    CAPTURE(content.substr(0, 20));
    machine.write("run/evictd/kubelet-runtime", content);
    CHECK(machine.recalled() == "file's");
    REQUIRE(keep_runtime(Machine::kubelet_of(machine.endpoint("own.sock")), machine.agent));
    CHECK(machine.recalled() == machine.endpoint("own.sock"));
  }
}

TEST_CASE("where nothing can be kept that is an error, and what was kept before holds") {
  const Machine machine;
  machine.write("one.sock", "");
  const auto one = machine.endpoint("one.sock");
  REQUIRE(keep_runtime(Machine::kubelet_of(one), machine.agent));
  std::filesystem::create_directories(machine.path("run/evictd/kubelet-runtime.new"));  // where it is written first
  const auto kept = keep_runtime(Machine::kubelet_of(machine.endpoint("other.sock")), machine.agent);
  CHECK(fixture::error_of(kept).find("kubelet-runtime: cannot be written: ") != std::string::npos);
  CHECK(machine.recalled() == one);
}

}  // namespace evictd::app::last_runtime_test
