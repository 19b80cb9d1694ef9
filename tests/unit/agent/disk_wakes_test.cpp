#include "agent/disk_wakes.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <future>
#include <memory>

#include "agent/fake_clock.hpp"
#include "agent/fakes.hpp"
#include "async/spawn.hpp"
#include "cri/run.hpp"

namespace evictd::agent::disk_wakes_test {
namespace {

using namespace std::chrono_literals;

/// A disk that hangs while it is told to, and is silent after 50 ms.
struct Scene {
  struct Disk {
    std::atomic<bool> hangs = false;
    std::promise<void> promise;
    std::shared_future<void> released{promise.get_future()};
  };

  ~Scene() { disk->promise.set_value(); }

  /// The reasons of the next pass.
  std::vector<std::string> next() {
    std::vector<std::string> sources;
    const auto wait = [&]() -> boost::asio::awaitable<void> {
      const auto wake = co_await wakes.next();
      for (const auto& reason : wake.reasons) sources.emplace_back(core::name(reason.source));
    };
    async::spawn(reactor.get_executor(), wait(), "waiting");
    REQUIRE(test::run_until(reactor, [&] { return !sources.empty(); }));
    return sources;
  }
  [[nodiscard]] static wake::Wake wake(const std::vector<core::WakeSource>& sources) {
    const auto now = core::Instant::clock::now();
    wake::Wake wake{.time = now, .reasons = {}};
    for (const auto source : sources) wake.reasons.push_back({source, "", now});
    return wake;
  }

  std::shared_ptr<Disk> disk = std::make_shared<Disk>();
  Steps steps;
  boost::asio::io_context reactor{1};
  FakeClock clock{reactor};
  FakeLog log{steps};
  wake::Wakes wakes{reactor.get_executor()};
  node::NodeDisk node_disk{reactor.get_executor(),
                           {.kubelet_root = "/", .pod_logs_dir = {}},
                           [disk = disk](const std::filesystem::path&) -> os::FileResult<node::FilesystemReading> {
                             if (disk->hangs) disk->released.wait();
                             return node::FilesystemReading{.available = 1, .capacity = 100, .inodes = {}, .device = 1};
                           },
                           50ms};
  DiskWakes disk_wakes{node_disk, wakes, log, clock};
};

}  // namespace

TEST_CASE("what woke a pass begins another one once the disks are read for it, each reason once") {
  Scene scene;
  scene.disk_wakes.passed(Scene::wake({core::WakeSource::Memcg, core::WakeSource::Psi}));
  scene.disk_wakes.passed(Scene::wake({core::WakeSource::Psi}));
  CHECK(scene.next() == std::vector<std::string>{"memcg", "psi"});
}

TEST_CASE("a disk that does not answer is recorded, and a pass begins without it") {
  Scene scene;
  scene.disk->hangs = true;
  scene.disk_wakes.passed(Scene::wake({core::WakeSource::Memcg}));
  scene.next();
  REQUIRE(scene.steps.size() == 1);
  CHECK(scene.steps.front().ends_with("degraded"));
}

}  // namespace evictd::agent::disk_wakes_test
