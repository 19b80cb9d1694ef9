#include "app/device_plugins.hpp"

#include <doctest/doctest.h>
#include <grpcpp/support/status.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/temporary_directory.hpp"
#include "cri/run.hpp"
#include "devices/fake_plugin.hpp"
#include "fixture/captured_log.hpp"
#include "fixture/result.hpp"
#include "os/unix_socket.hpp"

namespace evictd::app::device_plugins_test {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

const std::string gpu = "example.com/gpu";

struct FakeLookout final : node::KubeletLookout {
  asio::awaitable<std::optional<bool>> kubelet_runs(core::Instant) override {
    ++asked;
    if (gone_after != 0 && asked > gone_after) runs = false;
    co_return runs;
  }

  std::optional<bool> runs = false;
  int asked = 0;
  int gone_after = 0;  // looks; 0: it stays as it is
};

/// A node that had no kubelet when evictd started, with a plugin that evictd serves. What `directory` says is what the
/// operator has written.
struct Node {
  explicit Node(std::string_view written = config::to_be_found) {
    Configuration configuration;
    configuration.agent.device_plugins.directory = directory.path().native();
    configuration.written.device_plugins.directory = written;
    served =
        DevicePlugins::make(reactor.get_executor(), configuration, {}, kubelet, {.between = 1ms, .until_sure = 1ms});
    REQUIRE(served != nullptr);
    plugin.tell({test::plugin_device("a")});
    plugin.start();
    REQUIRE(registers().ok());
    REQUIRE(test::run_until(reactor, [&] { return has_device(); }));
  }

  grpc::Status registers() {
    auto status =
        std::async(std::launch::async, [socket = socket()] { return test::register_plugin(socket, gpu, "gpu.sock"); });
    REQUIRE(test::run_until(reactor, [&] { return status.wait_for(0s) == std::future_status::ready; }));
    return status.get();
  }
  /// Until a kubelet was looked for so many times more.
  void looks(int times) {
    const auto wanted = kubelet.asked + times;
    REQUIRE(test::run_until(reactor, [&] { return kubelet.asked >= wanted; }));
  }
  [[nodiscard]] std::string socket() const { return directory / "kubelet.sock"; }
  [[nodiscard]] bool has_device() const {
    const auto& groups = served->plugins().devices();
    const auto group = groups.find(gpu);
    return group != groups.end() && group->second->healthy.contains("a");
  }

  test::TemporaryDirectory directory;
  asio::io_context reactor;
  FakeLookout kubelet;
  test::FakePlugin plugin{directory / "gpu.sock"};
  std::unique_ptr<DevicePlugins> served;
};

}  // namespace

TEST_CASE("plugins are left to a kubelet that comes later than evictd, which is said once, and its socket stays") {
  Node node;
  node.looks(3);
  CHECK(node.has_device());
  fs::remove(node.socket());  // as a kubelet begins
  const auto kubelets = fixture::value_of(os::ListeningSocket::open(node.socket()));
  {
    const fixture::CapturedLog log;
    node.kubelet.runs = true;
    REQUIRE(test::run_until(node.reactor, [&] { return !node.has_device(); }));
    node.reactor.run_for(20ms);
    const auto lines = log.lines();
    CHECK(std::ranges::count_if(lines, [](const auto& line) { return line.starts_with("a kubelet runs, and "); }) == 1);
  }
  CHECK(node.served->plugins().devices().empty());
  CHECK(node.served->plugins().resources() == std::set<std::string>{gpu});
  node.kubelet.runs = false;  // nor does evictd take them back
  node.reactor.run_for(20ms);
  CHECK(
      fixture::error_of(test::run(node.reactor, node.served->plugins().add({.resource = gpu, .endpoint = "gpu.sock"})))
          .starts_with("a kubelet runs on this node"));
  node.served.reset();
  CHECK(fs::is_socket(node.socket()));
}

TEST_CASE("a plugin that registers before the kubelet has its own socket there is told whose it is") {
  Node node;
  node.kubelet.runs = true;
  REQUIRE(test::run_until(node.reactor, [&] { return !node.has_device(); }));
  CHECK(node.registers().error_message() == "a kubelet runs on this node, which serves its device plugins");
  CHECK_FALSE(node.has_device());
  node.served.reset();
  CHECK_FALSE(fs::exists(node.socket()));
}

TEST_CASE("a kubelet that is seen once serves nobody, as where it only prints its version, nor does one unheard of") {
  Node node;
  node.kubelet.gone_after = node.kubelet.asked + 1;
  node.kubelet.runs = true;
  node.looks(4);
  CHECK(node.has_device());
  node.kubelet.gone_after = 0;
  node.kubelet.runs = std::nullopt;
  node.looks(4);
  CHECK(node.has_device());
}

TEST_CASE("in a directory that the operator names plugins are evictd's whoever else runs") {
  Node node{"/somewhere"};
  node.kubelet.runs = true;
  node.reactor.run_for(50ms);
  CHECK(node.has_device());
  CHECK(node.kubelet.asked == 0);
  CHECK(node.registers().ok());
}

TEST_CASE("nobody looks for a kubelet once it has ended") {
  Node node;
  const auto asked = node.kubelet.asked;
  node.served.reset();
  node.kubelet.runs = true;
  node.reactor.restart();
  node.reactor.run_for(20ms);
  CHECK(node.kubelet.asked == asked);
}

}  // namespace evictd::app::device_plugins_test
