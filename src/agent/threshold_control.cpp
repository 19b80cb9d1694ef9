#include "agent/threshold_control.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "agent/describe.hpp"
#include "agent/threshold_request.hpp"
#include "async/offload.hpp"
#include "core/error.hpp"
#include "core/signal.hpp"
#include "core/threshold_change.hpp"
#include "os/atomic_file.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;

namespace evictd::agent {
namespace {

using api::Refusal;
using api::RefusalCode;

/// Behind what an operator writes by hand, and before what is to overrule everything.
constexpr std::string_view own_drop_in = "90-evictctl.yaml";

std::string joined(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "; ")); }

std::unexpected<Refusal> refuse(RefusalCode code, std::string message) {
  return std::unexpected(Refusal{code, std::move(message)});
}

/// What was in force when evictd last ran. Absent where that is not known.
std::optional<core::EvictionSettings> last_run(const std::filesystem::path& state_file) {
  std::error_code error;
  if (state_file.empty() || !std::filesystem::exists(state_file, error)) return std::nullopt;
  auto configuration = config::load_kubelet_configuration(state_file);
  if (configuration) return std::move(configuration->eviction);
  os::log_warning("stateDirectory: {}; it is not known what was in force before", configuration.error().message);
  return std::nullopt;
}

void write_state(const std::filesystem::path& path, const std::string& text) {
  if (const auto written = os::write_atomically(path, text, {.mode = 0644}); !written)
    os::log_warning("stateDirectory: {}; a start with other thresholds will not be noticed", written.error().message);
}

/// Where a threshold comes from makes no difference.
bool is_same(const core::EvictionPolicy& a, const core::EvictionPolicy& b) {
  auto with_thresholds_of_b = a;
  with_thresholds_of_b.thresholds = b.thresholds;
  return with_thresholds_of_b == b && core::revision(a.thresholds) == core::revision(b.thresholds);
}

/// The thresholds of `earlier` with all else as it is now.
core::EvictionSettings with_thresholds_of(core::EvictionSettings earlier, const core::EvictionSettings& now) {
  auto settings = now;
  settings.hard = std::move(earlier.hard);
  settings.merge_defaults = false;
  settings.soft = std::move(earlier.soft);
  settings.soft_grace_period = std::move(earlier.soft_grace_period);
  settings.minimum_reclaim = std::move(earlier.minimum_reclaim);
  return settings;
}

Result<ThresholdCandidate> candidate(ThresholdLayers layers, core::ThresholdOverlay live) {
  auto policy = core::make_policy(core::overlaid(merged(layers), live));
  if (!policy) return std::unexpected(policy.error());
  return ThresholdCandidate{.layers = std::move(layers), .live = std::move(live), .policy = *std::move(policy)};
}

/// The overlay of evictd's own drop-in, which is made, empty, where it is missing.
core::ThresholdOverlay& own_overlay(ThresholdLayers& layers) {
  auto& drop_ins = layers.drop_ins;
  auto own = std::ranges::find(drop_ins, own_drop_in, &config::ThresholdDropIn::name);
  if (own == drop_ins.end()) {
    own = std::ranges::find_if(drop_ins, [](const auto& drop_in) { return drop_in.name > own_drop_in; });
    own = drop_ins.insert(own, {.name = std::string(own_drop_in), .overlay = {}});
  }
  return own->overlay;
}

ThresholdLayers of_last_run(const core::EvictionSettings& earlier, const ThresholdLayers& now) {
  return {.base = with_thresholds_of(earlier, merged(now)),
          .base_name = "thresholds of the last run",
          .drop_ins = {},
          .of_last_run = true};
}

/// What the files say, with what was live on top.
ThresholdCandidate with_live(ThresholdLayers layers, core::ThresholdOverlay live) {
  if (!live.empty()) {
    if (auto both = candidate(layers, std::move(live))) return *std::move(both);
    os::log_warning(
        "what was changed by calls before the restart does not go with the configuration any more, and is forgotten");
  }
  return candidate(std::move(layers), {}).value();
}

}  // namespace

core::EvictionSettings merged(const ThresholdLayers& layers) {
  auto settings = layers.base;
  for (const auto& drop_in : layers.drop_ins) settings = core::overlaid(std::move(settings), drop_in.overlay);
  return settings;
}

ThresholdStart thresholds_at_start(ThresholdLayers layers, core::ThresholdOverlay live,
                                   const ThresholdControlOptions& options, const core::Observations& first) {
  const auto earlier = last_run(options.state_file);
  if (earlier && !layers.is_known) {
    // What calls changed was on top of those, and need not go with a guess.
    if (auto before = candidate(of_last_run(*earlier, layers), live))
      return {.layers = before->layers, .live = before->live, .policy = before->policy};
  }
  auto from_files = with_live(std::move(layers), std::move(live));
  ThresholdStart start{.layers = std::move(from_files.layers),
                       .live = std::move(from_files.live),
                       .policy = std::move(from_files.policy)};
  if (!earlier || !start.layers.is_known) return start;
  auto before = candidate(of_last_run(*earlier, start.layers), start.live);
  if (!before || core::revision(before->policy.thresholds) == core::revision(start.policy.thresholds)) return start;
  start.evictions_in_first_minute = options.max_evictions_after;
  if (core::evict_at_once(before->policy.thresholds, start.policy.thresholds, first).empty()) return start;
  start.staged = std::exchange(start.layers, std::move(before->layers));
  start.live = std::move(before->live);
  start.policy = std::move(before->policy);
  return start;
}

ThresholdControl::ThresholdControl(const Executors& executors, ThresholdStart start, ThresholdControlOptions options,
                                   core::ThresholdOverlay& live, ThresholdSubject& subject)
    : reactor_{executors.reactor},
      drop_in_writer_{executors.drop_ins},
      options_{std::move(options)},
      layers_{std::move(start.layers)},
      live_{live},
      policy_{std::move(start.policy)},
      revision_{core::revision(policy_.thresholds)},
      staged_{std::move(start.staged)},
      state_writer_{executors.state_file,
                    [path = options_.state_file](const std::string& text) { write_state(path, text); }},
      subject_{subject} {
  live_ = std::move(start.live);
  keep_state();
  if (staged_)
    subject_.report({},
                    fmt::format("the thresholds changed since the last run, and the new ones are held back because "
                                "pods would be evicted at once: {}; evictctl thresholds apply --yes puts them in force",
                                joined(staged())));
}

std::vector<std::string> ThresholdControl::evict_at_once(const core::EvictionPolicy& policy) const {
  return core::evict_at_once(policy_.thresholds, policy.thresholds, subject_.observe());
}

std::vector<std::string> ThresholdControl::staged() const {
  if (!staged_) return {};
  const auto waiting = candidate(*staged_, live_);
  if (!waiting) return {waiting.error().message};
  return core::differences(policy_.thresholds, waiting->policy.thresholds);
}

std::vector<std::string> ThresholdControl::drop_ins() const {
  std::vector<std::string> files;
  for (const auto& drop_in : layers_.drop_ins) files.push_back(layers_.drop_ins_at / drop_in.name);
  return files;
}

std::vector<std::string> ThresholdControl::warnings() const {
  auto lines = core::doubtful_thresholds(policy_.thresholds, subject_.observe(), options_.watermarks);
  if (refused_) lines.push_back("the configuration is refused, and the old one stays: " + *refused_);
  return lines;
}

std::vector<std::string> ThresholdControl::warnings_at_start() const {
  const auto observations = subject_.observe();
  auto thresholds = policy_.thresholds;
  std::erase_if(thresholds, [&](const core::Threshold& threshold) {
    return core::is_disk(threshold.signal) && !observations[threshold.signal];
  });
  return core::doubtful_thresholds(thresholds, observations, options_.watermarks);
}

v1::ThresholdSet ThresholdControl::describe() const { return describe(current()); }

v1::ThresholdSet ThresholdControl::describe(const Candidate& candidate) const {
  v1::ThresholdSet set;
  set.set_revision(core::revision(candidate.policy.thresholds));
  const auto observations = subject_.observe();
  for (const auto& threshold : candidate.policy.thresholds) {
    const auto& observation = observations[threshold.signal];
    auto& setting = *set.add_thresholds();
    *setting.mutable_threshold() = describe_threshold(threshold, observation ? observation->capacity : 0);
    auto origin = origin_of(threshold, candidate.layers, candidate.live);
    setting.set_source(std::move(origin.source));
    setting.set_origin(std::move(origin.place));
  }
  for (auto& line : core::doubtful_thresholds(candidate.policy.thresholds, observations, options_.watermarks))
    set.add_warnings(std::move(line));
  if (refused_) set.add_warnings("the configuration is refused, and the old one stays: " + *refused_);
  for (auto& line : staged()) set.add_staged(std::move(line));
  return set;
}

Result<ThresholdCandidate> ThresholdControl::requested(const v1::UpdateThresholdsRequest& request) const {
  const auto& layers = request.apply_staged() && staged_ ? *staged_ : layers_;
  const auto overlay = overlay_of(request, core::overlaid(merged(layers), live_));
  if (!overlay) return std::unexpected(overlay.error());
  auto result = candidate(layers, core::stacked(live_, *overlay));
  if (result) result->was_staged = request.apply_staged();
  return result;
}

/// The same thresholds with what is live in evictd's own drop-in.
Result<ThresholdCandidate> ThresholdControl::saved(const Candidate& wanted) const {
  auto layers = wanted.layers;
  auto& own = own_overlay(layers);
  own = core::stacked(std::move(own), wanted.live);
  auto result = candidate(std::move(layers), {});
  if (!result) return result;
  result->was_staged = wanted.was_staged;
  if (core::revision(result->policy.thresholds) != core::revision(wanted.policy.thresholds))
    return fail(fmt::format("{} would not hold: a drop-in behind it says otherwise", own_drop_in));
  return result;
}

/// What is written now in evictd's own drop-in, on the other files as they are now: they may have been read anew since
/// it was asked for.
Result<ThresholdCandidate> ThresholdControl::renewed(const Candidate& written) const {
  auto layers = written.was_staged && staged_ ? *staged_ : layers_;
  auto its_layers = written.layers;
  own_overlay(layers) = std::move(own_overlay(its_layers));
  auto result = candidate(std::move(layers), {});
  if (result) result->was_staged = written.was_staged;
  return result;
}

void ThresholdControl::update(const v1::UpdateThresholdsRequest& request, api::ThresholdHandler::UpdateDone done) {
  if (saving_ == Saving::Awaited) return done(refuse(RefusalCode::Aborted, "another change is being saved: try again"));
  if (saving_ == Saving::Late && request.save())
    return done(refuse(RefusalCode::FailedPrecondition,
                       fmt::format("{} is still being written for an earlier change: its disk does not answer",
                                   (options_.drop_ins / own_drop_in).native())));
  if (!request.expected_revision().empty() && request.expected_revision() != revision_)
    return done(refuse(RefusalCode::Aborted,
                       fmt::format("somebody changed the thresholds: they are at revision {}, not {}; look at them "
                                   "again before you change them",
                                   revision_, request.expected_revision())));
  if (request.apply_staged() && !staged_)
    return done(refuse(RefusalCode::FailedPrecondition, "nothing is held back: there is nothing to apply"));
  if (request.save() && options_.drop_ins.empty())
    return done(refuse(RefusalCode::FailedPrecondition, "there is nowhere to save them: thresholds.dropIns is \"\""));
  auto wanted = requested(request);
  if (!wanted) return done(refuse(RefusalCode::InvalidArgument, wanted.error().message));
  if (request.save() && wanted->layers.of_last_run)
    return done(refuse(RefusalCode::FailedPrecondition,
                       "nothing can be saved while the thresholds of the last run stand for what the files say: leave "
                       "--save out, or try again once those are in force"));
  auto next = request.save() ? saved(*wanted) : std::move(wanted);
  if (!next) return done(refuse(RefusalCode::FailedPrecondition, next.error().message));

  v1::UpdateThresholdsResponse response;
  for (auto& line : core::differences(policy_.thresholds, next->policy.thresholds))
    response.add_changes(std::move(line));
  const auto at_once = evict_at_once(next->policy);
  response.mutable_evict_at_once()->Add(at_once.begin(), at_once.end());
  *response.mutable_thresholds() = describe(*next);
  if (request.validate_only()) return done(std::move(response));
  if (!at_once.empty() && !request.force())
    return done(refuse(
        RefusalCode::FailedPrecondition,
        fmt::format("pods would be evicted at once: {}; nothing is changed without --yes (force)", joined(at_once))));
  if (request.save()) return save(*std::move(next), std::move(response), std::move(done));
  put_in_force(*std::move(next), "by a call");
  *response.mutable_thresholds() = describe();
  done(std::move(response));
}

/// First the file, then the thresholds: what is in force after this is also in force after a restart.
void ThresholdControl::save(Candidate candidate, v1::UpdateThresholdsResponse response,
                            api::ThresholdHandler::UpdateDone done) {
  saving_ = Saving::Awaited;
  const auto path = options_.drop_ins / own_drop_in;
  response.set_saved_to(path);
  auto write = [path, text = config::print_threshold_drop_in(own_overlay(candidate.layers))] {
    return os::write_atomically(path, text, {.mode = 0644});
  };
  auto finish = [this, path, candidate = std::move(candidate), response = std::move(response),
                 done = std::move(done)](const std::optional<Result<void>>& written) mutable {
    saving_ = written ? Saving::Nothing : Saving::Late;
    if (!written)
      return done(refuse(RefusalCode::DeadlineExceeded,
                         fmt::format("{}: its disk did not take it within {} ms; nothing is changed until it does, and "
                                     "then the file counts as if it were written by hand",
                                     path.native(), options_.save_patience.count())));
    if (!*written) return done(refuse(RefusalCode::Internal, written->error().message + "; nothing is changed"));
    put_saved_in_force(path, candidate, std::move(response), std::move(done));
  };
  async::offload(reactor_, drop_in_writer_, alive_, std::move(write), options_.save_patience, std::move(finish),
                 [this, path](const Result<void>& written) { saved_late(path, written); });
}

/// What the caller has not seen, since other files changed meanwhile, does no more than those may by themselves: pods
/// that would be evicted at once are not.
void ThresholdControl::put_saved_in_force(const std::string& path, const Candidate& written,
                                          v1::UpdateThresholdsResponse response,
                                          api::ThresholdHandler::UpdateDone done) {
  auto now = renewed(written);
  if (!now || (!is_same(now->policy, written.policy) && !evict_at_once(now->policy).empty()))
    return done(refuse(RefusalCode::Aborted,
                       fmt::format("{}: it is written, but other files changed meanwhile; nothing is changed until all "
                                   "are read anew, and then the file counts as if it were written by hand",
                                   path)));
  if (!is_same(now->policy, written.policy)) response.clear_evict_at_once();  // what it named was another one's
  response.clear_changes();
  for (auto& line : core::differences(policy_.thresholds, now->policy.thresholds))
    response.add_changes(std::move(line));
  put_in_force(*std::move(now), "by a call, and saved");
  *response.mutable_thresholds() = describe();
  done(std::move(response));
}

/// inotify tells of the file as of every other drop-in.
void ThresholdControl::saved_late(const std::string& path, const Result<void>& written) {
  saving_ = Saving::Nothing;
  if (written)
    os::log_warning("{}: it was written at last", path);
  else
    os::log_warning("{}; nothing was changed", written.error().message);
}

bool ThresholdControl::put_in_force(Candidate candidate, const std::string& what) {
  auto changes = core::differences(policy_.thresholds, candidate.policy.thresholds);
  const bool same = is_same(policy_, candidate.policy);
  const bool was_known = layers_.is_known;
  layers_ = std::move(candidate.layers);
  live_ = std::move(candidate.live);
  policy_ = std::move(candidate.policy);
  revision_ = core::revision(policy_.thresholds);
  if (candidate.was_staged) staged_.reset();
  if (!same || !was_known) keep_state();
  if (same) return false;
  // Told before the pass, in which pods may have to go because of it.
  if (changes.empty()) changes.emplace_back("grace and transition periods");
  const auto message = fmt::format("thresholds changed {}: {}", what, joined(changes));
  subject_.report(std::move(changes), message);
  subject_.apply(policy_, options_.max_evictions_after);
  return true;
}

bool ThresholdControl::reload(ThresholdLayers layers) {
  auto next = candidate(layers, live_);
  if (!next && !layers_.is_known) {
    // What was changed on top of a guess must not keep the guess in force.
    next = candidate(std::move(layers), {});
    if (next)
      subject_.report({},
                      "what was changed by calls does not go with the configuration that was found, and is forgotten");
  }
  if (!next) {
    refuse_files(next.error());
    return false;
  }
  refused_.reset();
  // What was a guess was in force for nobody.
  const auto at_once = layers_.is_known ? evict_at_once(next->policy) : std::vector<std::string>{};
  if (at_once.empty()) {
    staged_.reset();
    return put_in_force(*std::move(next), "by a file");
  }
  const auto before = staged();
  staged_ = std::move(next->layers);
  if (staged() == before) return false;
  subject_.report({},
                  fmt::format("changed thresholds are held back because pods would be evicted at once: {}; evictctl "
                              "thresholds apply --yes puts them in force",
                              joined(at_once)));
  return false;
}

void ThresholdControl::refuse_files(const Error& error) {
  auto what = error.message;
  if (error.column > 0) what += fmt::format(" (column {})", error.column);
  if (refused_ == what) return;
  refused_ = what;
  subject_.report({}, "the configuration is refused, and the old one stays: " + what);
}

void ThresholdControl::keep_state() {
  if (options_.state_file.empty() || !layers_.is_known) return;
  state_writer_.write(config::print_thresholds(core::overlaid(merged(layers_), live_)));
}

}  // namespace evictd::agent
