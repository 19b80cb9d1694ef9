#include "agent/runtime_watch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "agent/loop.hpp"
#include "async/side_thread.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "fixture/captured_log.hpp"

namespace evictd::agent::runtime_watch_test {
namespace {

/// A runtime that may come and go, and who looks after it.
struct Scene {
  Scene() {
    runtime::v1::ImageFsInfoResponse images;
    images.add_image_filesystems()->mutable_fs_id()->set_mountpoint("/images");
    runtime.put(images);
    watch.start();
  }
  ~Scene() { watch.stop(); }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  /// A node that may be short of pids.
  node::NodeDisk::MakeWorker maker() {
    return [this](const boost::asio::any_io_executor& executor, const std::string& name) {
      if (no_threads) throw std::system_error{EAGAIN, std::system_category()};
      return std::make_unique<async::SideThread>(executor, name);
    };
  }
  void start_again() {
    runtime.stop();
    REQUIRE(test::run_until(loop.reactor, [&] { return !loop.runtime.connected(); }));
    runtime.start();
  }

  bool no_threads = false;
  test::FakeRuntime runtime;
  Loop loop{{}, core::Signal::MemoryAvailable, runtime.endpoint()};
  node::NodeDisk disk{loop.reactor.get_executor(), loop.settings, node::read_filesystem, node::DiskReader::patience,
                      maker()};
  RuntimeWatch watch{loop.reactor.get_executor(),
                     {.runtime = loop.runtime,
                      .reclaimer = loop.reclaimer,
                      .disk = disk,
                      .pods = loop.running,
                      .events = loop.events,
                      .alarms = loop.alarms,
                      .clock = loop.clock}};
};

}  // namespace

TEST_CASE("when the runtime appears its pods are listed, and its images are watched where it says they lie") {
  Scene scene;
  CHECK(scene.watch.name().empty());
  CHECK_FALSE(scene.loop.alarms.watches_images());
  scene.runtime.start();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return scene.loop.alarms.watches_images(); }));
  CHECK_FALSE(scene.watch.name().empty());
  CHECK(scene.loop.running.changes == 1);
}

TEST_CASE("each time the runtime appears its images are looked at, for they grow old from then on") {
  Scene scene;
  const auto looks = [&] { return scene.runtime.calls("ListImages"); };
  scene.runtime.start();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return looks() >= 1; }));
  // Its next look by the clock is minutes away.
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return scene.loop.alarms.watches_images(); }));
  scene.runtime.stop();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return !scene.loop.runtime.connected(); }));
  const auto before = looks();
  scene.runtime.start();
  CHECK(test::run_until(scene.loop.reactor, [&] { return looks() > before; }));
}

TEST_CASE("each time the runtime appears, the way that a kill goes is warmed up") {
  Scene scene;
  scene.runtime.start();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return scene.runtime.calls("StopContainer") == 1; }));
  CHECK(scene.runtime.done().empty());
}

TEST_CASE("where no thread can be had for the image file system that is told once, and it is tried again") {
  const auto is_about_it = [](const std::string& line) { return line.contains("no thread to read it"); };
  const fixture::CapturedLog log;
  Scene scene;
  scene.no_threads = true;
  scene.runtime.start();
  const auto told = [&] { return std::ranges::count_if(log.lines(), is_about_it); };
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return told() > 0; }));
  CHECK_FALSE(scene.loop.alarms.watches_images());
  const auto asked = scene.runtime.calls("ImageFsInfo");
  scene.start_again();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return scene.runtime.calls("ImageFsInfo") > asked; }));

  scene.no_threads = false;
  scene.start_again();
  CHECK(test::run_until(scene.loop.reactor, [&] { return scene.loop.alarms.watches_images(); }));
  CHECK(told() == 1);
}

}  // namespace evictd::agent::runtime_watch_test
