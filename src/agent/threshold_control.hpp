#pragma once
#include <evictd.pb.h>

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/handlers.hpp"
#include "async/latest_only.hpp"
#include "config/kubelet_configuration.hpp"
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
  std::vector<config::ThresholdDropIn> drop_ins{};  ///< on top of it, in their order
  config::Origins base_origins{};                   ///< where the kubelet's values were written
  std::filesystem::path drop_ins_at{};              ///< the directory of the drop-ins
  /// False: the kubelet's configuration could not be found, and `base` is a guess, by which nothing is evicted.
  bool is_known = true;
  /// `base` is what was in force in the last run, which stands for the files: nothing can be saved on top of those.
  bool of_last_run = false;
};

[[nodiscard]] core::EvictionSettings merged(const ThresholdLayers& layers);

/// What thresholds are changed on. All is called on the reactor.
class ThresholdSubject {
 public:
  ThresholdSubject() = default;
  ThresholdSubject(const ThresholdSubject&) = delete;
  ThresholdSubject& operator=(const ThresholdSubject&) = delete;
  virtual ~ThresholdSubject() = default;

  /// The node as it is now.
  [[nodiscard]] virtual core::Observations observe() const = 0;
  /// Puts the policy in force, with a pass and re-armed notifiers in this very turn. `evictions_within_a_minute`: as in
  /// core::PolicyChanged.
  virtual void apply(core::EvictionPolicy policy, std::optional<std::size_t> evictions_within_a_minute) = 0;
  /// Reports what happened: the changes, a line each, or none where something was refused or is held back.
  virtual void report(std::vector<std::string> changes, const std::string& message) = 0;
};

struct ThresholdControlOptions {
  std::filesystem::path drop_ins;       ///< thresholds.dropIns; empty: nothing can be saved
  std::filesystem::path state_file;     ///< thresholds.yaml in stateDirectory; empty: none
  std::size_t max_evictions_after = 0;  ///< thresholds.maxEvictionsAfter
  std::optional<core::ZoneWatermarks> watermarks;
  /// For a drop-in to be written, which takes a disk that works some milliseconds. A caller waits no longer.
  std::chrono::milliseconds save_patience{3000};
};

/// Thresholds that may be put in force.
struct ThresholdCandidate {
  ThresholdLayers layers;
  core::ThresholdOverlay live;
  core::EvictionPolicy policy;
  bool was_staged = false;  ///< its layers are those that were held back
};

/// What a start begins with.
struct ThresholdStart {
  ThresholdLayers layers;
  core::ThresholdOverlay live;  ///< on top of them: what was changed by calls before a restart, and not saved
  core::EvictionPolicy policy;  ///< what these make
  /// What the files have now, held back because pods would be evicted at once: then `layers` are those of the last run.
  std::optional<ThresholdLayers> staged{};
  /// How many pods may be evicted in the first minute: the options' number where this start brought other thresholds,
  /// else 0 (no limit).
  std::size_t evictions_in_first_minute = 0;
};

/// `layers` make a policy, as the caller has checked; `live` is dropped with a warning where it does not go with them.
/// Where the layers are not known, what was in force in the last run stands for them.
/// `first`: the node as it was read before the agent. Reads the state file.
[[nodiscard]] ThresholdStart thresholds_at_start(ThresholdLayers layers, core::ThresholdOverlay live,
                                                 const ThresholdControlOptions& options,
                                                 const core::Observations& first);

/// The thresholds in force, and the ways in which they change: by a call, by files that changed, by a start with other
/// files than the last.
///
/// A change by which pods would be evicted at once is staged: it is reported, and held back until it is applied. What
/// was changed by a call and not saved stays on top of the files until the machine ends, or a call removes it.
///
/// A change that is to be saved takes effect once its file is written. Where that takes longer than a caller waits, the
/// file takes effect like one that another program wrote, when it is there at last; until then nothing else is saved.
/// Other files that are read meanwhile stay in force.
///
/// On the reactor; files are written beside it.
class ThresholdControl {
 public:
  /// What runs where. The drop-ins and the state file may be on different disks, and each hangs by itself.
  struct Executors {
    boost::asio::any_io_executor reactor;
    boost::asio::any_io_executor drop_ins;    ///< where they are written
    boost::asio::any_io_executor state_file;  ///< where it is written
  };
  /// Saves what is in force, and reports what is staged. `live` is where the thresholds that calls changed are kept
  /// for a restart: it becomes that of `start`. It and `subject` must outlive this.
  ThresholdControl(const Executors& executors, ThresholdStart start, ThresholdControlOptions options,
                   core::ThresholdOverlay& live, ThresholdSubject& subject);

  [[nodiscard]] const core::EvictionPolicy& policy_in_force() const { return policy_; }

  /// Answers UpdateThresholds. `done` is called on the reactor, at once unless something is to be saved.
  void update(const v1::UpdateThresholdsRequest& request, api::ThresholdHandler::UpdateDone done);
  /// The files say this now. Whether it was applied to the subject. Live changes stay on top of it. Where they do not
  /// go with it, it is refused, also where the thresholds of the last run are in force; but the first that is known
  /// takes the place of a guess, and the changes are forgotten.
  bool reload(ThresholdLayers layers);
  /// The files cannot be used; what is in force stays.
  void refuse_files(const Error& error);

  [[nodiscard]] v1::ThresholdSet describe() const;
  [[nodiscard]] const std::string& revision() const { return revision_; }
  /// The files of the drop-ins in force, with their directory.
  [[nodiscard]] std::vector<std::string> drop_ins() const;
  [[nodiscard]] std::vector<std::string> warnings() const;
  /// The same as long as disks may not have been read yet, or the runtime has not named its own: nothing of those that
  /// are not measured.
  [[nodiscard]] std::vector<std::string> warnings_at_start() const;
  [[nodiscard]] std::vector<std::string> staged() const;

 private:
  using Candidate = ThresholdCandidate;
  [[nodiscard]] Result<Candidate> requested(const v1::UpdateThresholdsRequest& request) const;
  [[nodiscard]] Result<Candidate> saved(const Candidate& wanted) const;
  [[nodiscard]] Result<Candidate> renewed(const Candidate& written) const;
  [[nodiscard]] v1::ThresholdSet describe(const Candidate& candidate) const;
  [[nodiscard]] std::vector<std::string> evict_at_once(const core::EvictionPolicy& policy) const;
  [[nodiscard]] Candidate current() const { return {layers_, live_, policy_, false}; }
  /// Whether that changed anything.
  bool put_in_force(Candidate candidate, const std::string& what);
  void keep_state();
  void save(Candidate candidate, v1::UpdateThresholdsResponse response, api::ThresholdHandler::UpdateDone done);
  void put_saved_in_force(const std::string& path, const Candidate& written, v1::UpdateThresholdsResponse response,
                          api::ThresholdHandler::UpdateDone done);
  void saved_late(const std::string& path, const Result<void>& written);

  boost::asio::any_io_executor reactor_;
  boost::asio::any_io_executor drop_in_writer_;
  ThresholdControlOptions options_;
  ThresholdLayers layers_;
  core::ThresholdOverlay& live_;  // on top of them
  core::EvictionPolicy policy_;
  std::string revision_;
  std::optional<ThresholdLayers> staged_;
  std::optional<std::string> refused_;  // why the files are not in force
  enum class Saving : std::uint8_t { Nothing, Awaited, Late };
  Saving saving_ = Saving::Nothing;
  async::LatestOnly<std::string> state_writer_;
  ThresholdSubject& subject_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what is under way outlives this
};

}  // namespace evictd::agent
