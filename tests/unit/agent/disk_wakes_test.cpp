#include "agent/disk_wakes.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <semaphore>

#include "agent/fake_clock.hpp"
#include "agent/fakes.hpp"
#include "cri/run.hpp"

namespace evictd::agent::disk_wakes_test {
namespace {

using namespace std::chrono_literals;

/// A disk that hangs while it is told to.
struct Scene {
  struct Disk {
    std::atomic<bool> hangs = false;
    std::counting_semaphore<> answers{0};  // of one that hangs
  };

  explicit Scene(core::Duration disk_patience = 50ms) : patience{disk_patience} {}
  ~Scene() { disk->answers.release(2); }

  wake::Wake next_wake() { return test::run(reactor, wakes.next()); }
  /// The reasons of the next pass.
  std::vector<std::string> next() {
    std::vector<std::string> sources;
    for (const auto& reason : next_wake().reasons) sources.emplace_back(core::name(reason.source));
    return sources;
  }
  [[nodiscard]] static wake::Wake wake(const std::vector<core::WakeSource>& sources) {
    const auto now = core::Instant::clock::now();
    wake::Wake wake{.time = now, .reasons = {}};
    for (const auto source : sources) wake.reasons.push_back({source, "", now});
    return wake;
  }

  core::Duration patience;  // after which it is silent
  std::shared_ptr<Disk> disk = std::make_shared<Disk>();
  Steps steps;
  boost::asio::io_context reactor{1};
  FakeClock clock{reactor};
  FakeLog log{steps};
  wake::Wakes wakes{reactor.get_executor()};
  node::NodeDisk node_disk{reactor.get_executor(),
                           {.kubelet_root = "/", .pod_logs_dir = {}},
                           [disk = disk](const std::filesystem::path&) -> os::FileResult<node::FilesystemReading> {
                             if (disk->hangs) disk->answers.acquire();
                             return node::FilesystemReading{.available = 1, .capacity = 100, .inodes = {}, .device = 1};
                           },
                           patience};
  DiskWakes disk_wakes{node_disk, wakes, log, clock};
};

}  // namespace

TEST_CASE("what woke a pass begins another one once the disks are read for it, each reason once") {
  Scene scene;
  scene.disk_wakes.passed(Scene::wake({core::WakeSource::Memcg, core::WakeSource::Psi}));
  scene.disk_wakes.passed(Scene::wake({core::WakeSource::Psi}));
  CHECK(scene.next() == std::vector<std::string>{"memcg", "psi"});
}

TEST_CASE("a reason that comes again while the disks are read for it has a pass see what is read after that") {
  Scene scene{1min};
  scene.disk->hangs = true;
  const auto first = Scene::wake({core::WakeSource::Files});
  scene.disk_wakes.passed(first);
  const auto again = Scene::wake({core::WakeSource::Files});
  scene.disk_wakes.passed(again);
  scene.disk->answers.release();
  const auto wake = scene.next_wake();
  CHECK(wake.time == first.time);
  scene.disk_wakes.passed(wake);
  scene.disk->answers.release();
  CHECK(scene.next_wake().time == first.time);
  core::Observations seen;
  CHECK(scene.node_disk.observe(seen, again.time).empty());
  REQUIRE(seen[core::Signal::NodefsAvailable]);
  CHECK(seen[core::Signal::NodefsAvailable]->time.value() >= again.time);
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
