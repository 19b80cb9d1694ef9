#include "app/live_thresholds.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.hpp"
#include "agent/describe.hpp"
#include "agent/evictions.hpp"
#include "agent/node_reports.hpp"
#include "agent/recorder.hpp"
#include "agent/threshold_request.hpp"
#include "app/admission.hpp"
#include "app/check_parts.hpp"
#include "app/last_runtime.hpp"
#include "app/place_watch.hpp"
#include "async/offload.hpp"
#include "config/agent_configuration.hpp"
#include "core/error.hpp"
#include "core/eviction_settings.hpp"
#include "core/observation.hpp"
#include "core/quantity.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"
#include "core/threshold_advice.hpp"
#include "core/threshold_overlay.hpp"
#include "node/zone_watermarks.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::app {
namespace {

/// A pod's first memory is back some 12 ms after the crossing on a calm machine (tools/manual/measurements.md); a busy
/// one takes several times as long.
constexpr auto assumed_release = 100ms;

/// For the configuration's files, which takes a disk that works some milliseconds. After that a warning says that they
/// are not read.
constexpr auto longest_reading = 10s;

agent::ThresholdLayers threshold_layers(const Configuration& configuration) {
  const auto& kubelet = configuration.kubelet_sources;
  return {.base = configuration.kubelet.eviction,
          .base_name = !kubelet.documents.empty() ? "kubelet configuration" : "default",
          .drop_ins = configuration.threshold_drop_ins,
          .base_origins = kubelet.origins,
          .drop_ins_at = configuration.agent.thresholds.drop_ins,
          .is_known = !configuration.watch_only};
}

/// A cgroup that stands for a node has a limit, and the kernel no watermarks for it.
std::optional<core::ZoneWatermarks> watermarks_of(const config::NodeSettings& node) {
  return node.cgroup_root == "/" ? node::read_zone_watermarks(node.proc_mount) : std::nullopt;
}

/// Without a state file: what is in force is kept for no later start.
agent::ThresholdControlOptions control_options(const config::AgentConfiguration& settings,
                                               const std::string& state_file,
                                               std::optional<core::ZoneWatermarks> watermarks = {}) {
  return {.drop_ins = settings.thresholds.drop_ins,
          .state_file = state_file,
          .max_evictions_after = static_cast<std::size_t>(settings.thresholds.max_evictions_after),
          .watermarks = watermarks};
}

std::string watching_because(const std::string& why) {
  return fmt::format(
      "nothing is evicted, as with --dry-run: by which thresholds the node's kubelet acts cannot be told: {}; name its "
      "configuration with --kubelet-config, or set thresholds.configz",
      why);
}

/// Before anybody hears of it: evictd may end for it. A file that the operator names is no kubelet's word.
void keep_what_is_told(const ConfigurationFiles& files, const Configuration& configuration) {
  if (!configuration.is_told || files.kubelet) return;
  if (const auto kept = keep_runtime(configuration.kubelet_sources, configuration.agent); !kept)
    os::log_warning("runtimeDirectory: {}; a start without the kubelet may find another runtime than it names",
                    kept.error().message);
}

/// What is not good is refused as a whole: evictd could not start with it. `drop_ins`: the directory that is watched,
/// and into which changes are saved. `allocates`: false where evictd runs without what stateDirectory says of pods.
Result<Configuration> load_and_check(const ConfigurationFiles& files, const std::string& drop_ins, bool allocates) {
  auto loaded = load_configuration(files, {}, Patience::AsItTakes, drop_ins);
  if (!loaded) return loaded;
  if (const auto checked = check_parts(*loaded); !checked) return std::unexpected(checked.error());
  if (!allocates) leave_out_allocation(*loaded);
  keep_what_is_told(files, *loaded);
  return loaded;
}

}  // namespace

std::string origin_of(const Configuration& configuration, const core::Threshold& threshold) {
  auto origin = agent::origin_of(threshold, threshold_layers(configuration), {});
  if (!origin.place.empty()) return std::move(origin.place);
  return threshold.source == core::ThresholdSource::Derived ? "what nodefs or imagefs has" : "the kubelet's default";
}

agent::ThresholdStart LiveThresholds::at_start(const Configuration& configuration, const core::Observations& first,
                                               core::ThresholdOverlay live) {
  return agent::thresholds_at_start(
      threshold_layers(configuration), std::move(live),
      control_options(configuration.agent, config::state_files(configuration.agent).thresholds), first);
}

LiveThresholds::LiveThresholds(asio::any_io_executor reactor, const Options& options, agent::ThresholdStart start,
                               const Parts& parts)
    : reactor_{reactor},
      files_{options.files},
      drop_ins_{options.configuration.agent.thresholds.drop_ins},
      allocates_{!options.configuration.state_is_silent},
      started_with_{options.configuration.written, options.configuration.kubelet},
      written_{started_with_},
      kubelet_sources_{options.configuration.kubelet_sources},
      kubelet_pid_{options.configuration.watch_only ? std::nullopt : options.configuration.kubelet_pid},
      is_known_{!options.configuration.watch_only},
      watermarks_{watermarks_of(options.configuration.agent.node)},
      parts_{parts},
      control_{{.reactor = reactor, .drop_ins = worker_.get_executor(), .state_file = state_worker_.get_executor()},
               std::move(start),
               control_options(options.configuration.written,
                               options.dry_run ? "" : config::state_files(options.configuration.agent).thresholds,
                               watermarks_),
               parts.live,
               *this} {
  for (const auto& warning : control_.warnings_at_start()) os::log_warning("{}", warning);
  const auto& configuration = options.configuration;
  keep_what_is_told(files_, configuration);
  if (configuration.watch_only) not_known(configuration);
  if (files_.kubelet && !configuration.watch_only) return;
  kubelet_watch_.emplace(reactor_, [this] { files_changed(); });
  kubelet_watch_->found(configuration.kubelet_pid, !configuration.watch_only);
}

LiveThresholds::~LiveThresholds() {
  worker_.finish();
  state_worker_.finish();
}

core::Observations LiveThresholds::observe() const { return parts_.reports.look(os::now()); }

void LiveThresholds::apply(core::EvictionPolicy policy, std::optional<std::size_t> evictions_within_a_minute) {
  parts_.agent.change_policy(std::move(policy), evictions_within_a_minute);
}

void LiveThresholds::report(std::vector<std::string> changes, const std::string& message) {
  parts_.recorder.config_changed(changes, message);
}

v1::ThresholdSet LiveThresholds::thresholds() {
  auto set = control_.describe();
  if (watch_only_) set.add_warnings(watching_because(*watch_only_));
  return set;
}

void LiveThresholds::update_thresholds(const v1::UpdateThresholdsRequest& request, UpdateDone done) {
  control_.update(request, std::move(done));
}

void LiveThresholds::add_to(v1::NodeStatus& status) const {
  status.set_thresholds_revision(control_.revision());
  if (watch_only_) {
    status.set_dry_run(true);
    status.add_warnings(watching_because(*watch_only_));
  }
  for (auto& line : control_.warnings()) status.add_warnings(std::move(line));
  for (const auto& document : kubelet_sources_.documents) status.add_threshold_documents(document);
  for (const auto& drop_in : control_.drop_ins()) status.add_threshold_documents(drop_in);
  for (auto& line : control_.staged()) status.add_staged(std::move(line));
}

api::Answer<v1::SuggestThresholdsResponse> LiveThresholds::suggest_thresholds() {
  const auto evidence = parts_.reports.memory_history().evidence(os::now(), watermarks_);
  auto advice = core::suggest_memory_threshold(evidence, assumed_release);
  v1::SuggestThresholdsResponse response;
  response.set_signal(std::string(core::name(core::Signal::MemoryAvailable)));
  response.set_suggested(advice.bytes);
  response.set_value(core::Quantity::bytes(advice.bytes).to_string());
  for (auto& step : advice.steps) {
    auto& message = *response.add_steps();
    message.set_what(std::move(step.what));
    message.set_arithmetic(std::move(step.arithmetic));
    message.set_bytes(step.bytes);
  }
  *response.mutable_watched() = agent::to_duration(evidence.watched);
  response.set_crossings(evidence.crossings);
  for (auto& doubt : advice.doubts) response.add_warnings(std::move(doubt));
  for (auto& line : control_.warnings()) response.add_warnings(std::move(line));
  const auto memory = observe()[core::Signal::MemoryAvailable];
  for (const auto& threshold : policy().thresholds)
    if (memory && threshold.signal == core::Signal::MemoryAvailable && threshold.is_hard())
      if (core::required(threshold, memory->capacity, core::Enforce::value_only) < advice.bytes)
        response.add_warnings(fmt::format("{}: it is configured lower than what is suggested", to_string(threshold)));
  return response;
}

/// Files are read beside the loop: on a node whose disk hangs, too, evictions go on. One reading at a time, however
/// often they change meanwhile.
void LiveThresholds::files_changed() {
  changed_again_ = reading_;
  if (std::exchange(reading_, true)) return;
  async::offload(
      reactor_, worker_.get_executor(), alive_,
      [files = files_, drop_ins = drop_ins_, allocates = allocates_] {
        return load_and_check(files, drop_ins, allocates);
      },
      longest_reading,
      [this](const std::optional<Result<Configuration>>& configuration) {
        if (configuration) return read(*configuration);
        control_.refuse_files(
            {fmt::format("its files could not be read within {} s: a disk does not answer, or there "
                         "are very many processes",
                         std::chrono::seconds(longest_reading).count())});
      },
      [this](const Result<Configuration>& configuration) { read(configuration); });
}

void LiveThresholds::read(const Result<Configuration>& configuration) {
  reading_ = false;
  loaded(configuration);
  if (std::exchange(changed_again_, false)) files_changed();
}

void LiveThresholds::loaded(const Result<Configuration>& configuration) {
  // Of a file that is named only the first reading may be late.
  if (files_.kubelet && configuration && !configuration->watch_only) kubelet_watch_.reset();
  if (kubelet_watch_)
    kubelet_watch_->found(configuration ? configuration->kubelet_pid : kubelet_pid_,
                          configuration && !configuration->watch_only);
  if (!configuration) return control_.refuse_files(configuration.error());
  if (configuration->watch_only) {
    not_known(*configuration);
    return tell_other_changes(configuration->written, written_.kubelet);
  }
  if (configuration->is_told) return known(*configuration);
  // None runs. One that cannot start for want of its configuration is tried again and again.
  if (watch_only_ && kubelet_watch_ && kubelet_watch_->may_come_back(os::now()))
    return tell_other_changes(configuration->written, written_.kubelet);
  auto kept = *configuration;
  if (kubelet_pid_) {
    // The one that ran may only be restarted: until another one runs, its thresholds hold, and no defaults.
    kept.kubelet = written_.kubelet;
    kept.kubelet_sources = kubelet_sources_;
    kept.kubelet_pid = kubelet_pid_;
  }
  known(kept);
}

void LiveThresholds::known(const Configuration& configuration) {
  is_known_ = true;
  kubelet_sources_ = configuration.kubelet_sources;
  kubelet_pid_ = configuration.kubelet_pid;
  // It acts before it goes by them: the first pass that has them is no pretence.
  const bool watched = act();
  const bool applied = control_.reload(threshold_layers(configuration));
  if (watched) {
    // Without other thresholds no pass has come of it, and what was decided meanwhile was not done.
    if (!applied) apply(control_.policy_in_force(), std::nullopt);
    parts_.reports.only_watch(false);
  }
  if (places_ != nullptr) places_->kubelet_says(configuration);
  tell_other_changes(configuration.written, configuration.kubelet);
}

/// A kubelet reads its files when it starts, and goes by them whatever becomes of them: what is in force is still that.
/// Another one may go by something else. One that has to be asked may be late with its answer.
void LiveThresholds::not_known(const Configuration& configuration) {
  const bool is_same = configuration.kubelet_pid == kubelet_pid_ || configuration.agent.thresholds.configz;
  if (is_known_ && !watch_only_ && is_same) return control_.refuse_files({*configuration.watch_only});
  only_watch(*configuration.watch_only);
}

void LiveThresholds::only_watch(const std::string& why) {
  if (watch_only_ == why) return;
  watch_only_ = why;
  parts_.recorder.config_changed({}, watching_because(why));
  parts_.evictions.only_watch(true);
  parts_.reports.only_watch(true);
}

bool LiveThresholds::act() {
  if (!watch_only_) return false;
  watch_only_.reset();
  parts_.recorder.config_changed({"evictd acts"}, "the kubelet's configuration is found, and evictd acts by it");
  parts_.evictions.only_watch(false);
  return true;
}

/// Thresholds and the log's level take effect at once; whatever else needs a restart says so. What was found in place
/// of an "auto" is no change that anybody made.
void LiveThresholds::tell_other_changes(const config::AgentConfiguration& written,
                                        const config::KubeletConfiguration& kubelet) {
  const auto before = std::exchange(written_, {written, kubelet});
  auto changes = changes_between(before, written_, started_with_);
  os::set_log_level(log_level(written.log.level));
  if (changes.lines.empty()) return;
  const auto message = changes.message();
  parts_.recorder.config_changed(std::move(changes.lines), message);
}

}  // namespace evictd::app
