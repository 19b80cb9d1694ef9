#pragma once
#include <evictd.pb.h>

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/handlers.hpp"
#include "async/latest_only.hpp"
#include "config/threshold_drop_in.hpp"
#include "core/error.hpp"
#include "core/eviction_settings.hpp"
#include "core/observation.hpp"
#include "core/threshold_advice.hpp"
#include "core/threshold_overlay.hpp"

namespace evictd::agent {

/// The thresholds as the files have them, layer by layer.
struct ThresholdLayers {
  core::EvictionSettings base;  ///< the kubelet's configuration
  std::string base_name = "kubelet configuration";
  std::vector<config::ThresholdDropIn> drop_ins;  ///< on top of it, in their order
};

[[nodiscard]] core::EvictionSettings merged(const ThresholdLayers& layers);

/// What thresholds are changed on. All is called on the reactor.
struct ThresholdSubject {
  std::function<core::Observations()> observe;  ///< the node as it is now
  /// Puts the policy in force, with a pass and re-armed notifiers in this very turn. `evictions_within_a_minute`: as in
  /// core::PolicyChanged.
  std::function<void(core::EvictionPolicy, std::size_t evictions_within_a_minute)> apply;
  /// Tells what happened: the changes, a line each, or none where something was refused or is held back.
  std::function<void(std::vector<std::string> changes, const std::string& message)> tell;
};

struct ThresholdControlOptions {
  std::filesystem::path drop_ins;       ///< thresholds.dropIns; empty: nothing can be saved
  std::filesystem::path state_file;     ///< thresholds.yaml in stateDirectory; empty: none
  std::size_t max_evictions_after = 0;  ///< thresholds.maxEvictionsAfter
  std::optional<core::ZoneWatermarks> watermarks;
  core::ThresholdOverlay live{};  ///< what was changed by calls before a restart, and not saved
  /// For a drop-in to be written, which takes a disk that works some milliseconds. A caller waits no longer.
  std::chrono::milliseconds save_patience{3000};
};

/// The thresholds in force, and the ways in which they change: by a call, by files that changed, by a start with other
/// files than the last.
///
/// A change by which pods would be evicted at once is staged: it is told and held back until somebody says so. What was
/// changed by a call and not saved stays on top of the files until the machine ends, or somebody removes it.
///
/// A change that is to be saved takes effect once its file is written. Where that takes longer than a caller waits, the
/// file takes effect like one that somebody else wrote, when it is there at last; until then nothing else is saved.
///
/// On the reactor; files are written on `worker`.
class ThresholdControl {
 public:
  /// `layers` make a policy, as the caller has checked. `policy_in_force()` is what the agent begins with, so this
  /// comes before the agent. Reads the state file.
  ThresholdControl(boost::asio::any_io_executor reactor, boost::asio::any_io_executor worker, ThresholdLayers layers,
                   ThresholdControlOptions options, const core::Observations& first);

  [[nodiscard]] const core::EvictionPolicy& policy_in_force() const { return policy_; }
  /// How many may go in the first minute: the options' where this start brought other thresholds, else 0 (no limit).
  [[nodiscard]] std::size_t evictions_after_start() const {
    return changed_at_start_ ? options_.max_evictions_after : 0;
  }

  /// From now on changes reach the agent; what was staged at the start is told.
  void begin(ThresholdSubject subject);

  /// Answers UpdateThresholds. `done` is called on the reactor, at once unless something is to be saved.
  void update(const v1::UpdateThresholdsRequest& request, api::Handlers::UpdateDone done);
  /// The files say this now.
  void reload(ThresholdLayers layers);
  /// The files cannot be used; what is in force stays.
  void refuse_files(const Error& error);

  [[nodiscard]] v1::ThresholdSet describe() const;
  [[nodiscard]] const std::string& revision() const { return revision_; }
  /// What was changed by calls and not saved.
  [[nodiscard]] const core::ThresholdOverlay& live() const { return live_; }
  [[nodiscard]] std::vector<std::string> warnings() const;
  [[nodiscard]] std::vector<std::string> staged() const;

 private:
  /// A state that may be put in force.
  struct Candidate {
    ThresholdLayers layers;
    core::ThresholdOverlay live;
    core::EvictionPolicy policy;
    bool was_staged = false;  ///< its layers are those that were held back
  };
  [[nodiscard]] Candidate at_start(ThresholdLayers layers) const;
  [[nodiscard]] static Result<Candidate> candidate(ThresholdLayers layers, core::ThresholdOverlay live);
  [[nodiscard]] Result<Candidate> requested(const v1::UpdateThresholdsRequest& request) const;
  [[nodiscard]] Result<Candidate> saved(const Candidate& wanted) const;
  [[nodiscard]] v1::ThresholdSet describe(const Candidate& candidate) const;
  [[nodiscard]] std::vector<std::string> evict_at_once(const core::EvictionPolicy& policy) const;
  [[nodiscard]] Candidate current() const { return {layers_, live_, policy_, false}; }
  void put_in_force(Candidate candidate, const std::string& what);
  void keep_state();
  void save(Candidate candidate, v1::UpdateThresholdsResponse response, api::Handlers::UpdateDone done);
  void saved_late(const std::string& path, const Result<void>& written);

  boost::asio::any_io_executor reactor_;
  boost::asio::any_io_executor worker_;
  ThresholdControlOptions options_;
  ThresholdLayers layers_;
  core::ThresholdOverlay live_;  // on top of them
  core::EvictionPolicy policy_;
  std::string revision_;
  std::optional<ThresholdLayers> staged_;
  std::optional<std::string> refused_;  // why the files are not in force
  bool changed_at_start_ = false;
  enum class Saving : std::uint8_t { Nothing, Awaited, Late };
  Saving saving_ = Saving::Nothing;
  async::LatestOnly<std::string> state_writer_;
  ThresholdSubject subject_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what is under way outlives this
};

}  // namespace evictd::agent
