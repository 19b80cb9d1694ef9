// Whoever reads evictd's log does not read, or has gone.
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <string>

#include "hostile/soon.hpp"
#include "log_pipe.hpp"
#include "testbed/wait.hpp"
#include "testbed/work_directory.hpp"

namespace integration::log_pipe_test {

using namespace std::chrono_literals;

namespace {

/// A scene whose evictd logs to a pipe. The pipe outlives evictd.
struct LoggingScene {
  testbed::WorkDirectory directory;
  LogPipe log{directory.path() / "log"};
  FaultScene scene{{.thresholds = {}, .wrapper = log.wrapper()}};
};

}  // namespace

TEST_SUITE_BEGIN("hostile");

TEST_CASE("a log that nobody reads holds up neither an eviction, nor a call, nor the end of evictd") {
  LoggingScene logging;
  auto& [directory, log, scene] = logging;
  log.fill();
  integration::expect_hog_goes_soon(scene);
  CHECK(scene.agent->status().evictions() == 1);
  log.fill();
  scene.agent->process().signal(SIGTERM);
  CHECK(scene.agent->process().wait(30s) == 0);
}

TEST_CASE("a reader of the log who comes back finds the eviction's lines") {
  LoggingScene logging;
  auto& [directory, log, scene] = logging;
  log.drain();
  log.fill();
  integration::expect_hog_goes_soon(scene);
  std::string text;
  testbed::wait_until("the last line of the eviction", 30s, [&] {
    text += log.drain();
    return text.find("evictd: default/hog: cleaned up after ") != std::string::npos;
  });
  CHECK(text.find("evictd: evicting default/hog: ") < text.find("evictd: default/hog: stopped "));
}

TEST_CASE("a reader of the log who leaves ends neither the eviction nor evictd") {
  LoggingScene logging;
  auto& [directory, log, scene] = logging;
  log.leave();
  integration::expect_hog_goes_soon(scene);
  scene.wait_until_cleaned();
  scene.check_victims();
  scene.agent->process().signal(SIGTERM);
  CHECK(scene.agent->process().wait(30s) == 0);
}

TEST_SUITE_END();

}  // namespace integration::log_pipe_test
