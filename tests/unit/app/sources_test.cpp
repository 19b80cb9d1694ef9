#include "app/sources.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "agent/loop.hpp"
#include "agent/recorder.hpp"
#include "app/configuration.hpp"
#include "app/live_thresholds.hpp"
#include "core/threshold_overlay.hpp"
#include "core/wake.hpp"
#include "events/event_log.hpp"
#include "fixture/tree.hpp"

namespace evictd::app::sources_test {
namespace {

using namespace std::chrono_literals;

/// What tells of changed files on a node without an AgentConfiguration. Nothing is armed, so no file is read.
struct WatchedFiles {
  WatchedFiles() {
    const SourceMaker maker{.sources = sources,
                            .reactor = loop.reactor.get_executor(),
                            .wakes = loop.wakes,
                            .configuration = configuration,
                            .files = std::make_shared<agent::IdleWorker>()};
    maker.watch_configuration(thresholds);
  }
  static Configuration without_file(const fixture::Tree& tree) {
    Configuration configuration;
    configuration.written.state_directory = tree.path("state").native();
    configuration.agent = configuration.written;
    return configuration;
  }
  [[nodiscard]] bool has(core::WakeSource source) const {
    return std::ranges::any_of(sources,
                               [&](const auto& each) { return each->status().front().name == core::name(source); });
  }

  fixture::Tree tree;
  ConfigurationFiles files{.agent = {}, .kubelet = tree.path("kubelet.yaml").native()};
  Configuration configuration = without_file(tree);
  agent::Loop loop{};
  events::EventLog events{loop.reactor.get_executor()};
  agent::Recorder recorder{events};
  core::ThresholdOverlay live{};
  LiveThresholds thresholds{
      loop.reactor.get_executor(),
      {.files = files, .configuration = configuration},
      LiveThresholds::at_start(configuration, agent::Loop::memory(4096), {}),
      {.agent = loop.agent, .evictions = loop.evictions, .reports = loop.reports, .recorder = recorder, .live = live}};
  Sources sources;
};

}  // namespace

TEST_CASE("switched off there is no trigger for stalls, and a stall of 0 s is none") {
  using wake::PsiLevel;
  config::NotifierSettings settings;
  CHECK(psi_levels(settings) == std::vector<PsiLevel>{{false, 50ms, 500ms}, {true, 25ms, 500ms}});
  settings.psi_some = {};
  CHECK(psi_levels(settings) == std::vector<PsiLevel>{{true, 25ms, 500ms}});
  settings.disable = {config::NotifierSource::Psi};
  CHECK(psi_levels(settings).empty());
}

TEST_CASE("the usual configuration is watched where there is none yet") {
  const WatchedFiles watched;
  CHECK(watched.has(core::WakeSource::Configuration));
  CHECK(watched.has(core::WakeSource::DropIns));
}

}  // namespace evictd::app::sources_test
