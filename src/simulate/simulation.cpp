#include "simulate/simulation.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "admission/chain.hpp"
#include "admission/handler.hpp"
#include "core/action.hpp"
#include "core/answer.hpp"
#include "core/duration.hpp"
#include "core/event.hpp"
#include "core/eviction_order.hpp"
#include "core/image_ages.hpp"
#include "core/pass.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"
#include "core/synchronizer.hpp"
#include "core/trim.hpp"
#include "simulate/describe_own.hpp"
#include "simulate/scenario_node.hpp"
#include "simulate/simulated_allocations.hpp"
#include "simulate/simulated_holds.hpp"

namespace json = boost::json;

namespace evictd::simulate {
namespace {

/// A node that exists in the scenario alone.
class Simulation {
 public:
  explicit Simulation(const Scenario& scenario)
      : scenario_{scenario},
        synchronizer_{scenario.policy,
                      {.in_flight_reclaim = scenario.own.in_flight_reclaim, .back_off = scenario.own.back_off}},
        chain_{admission::kubelet_chain(scenario.admission).value()},
        allocations_{scenario.admission.allocation},
        holds_{scenario.own.holds},
        pods_{scenario.pods} {
    allocations_.add(pods_);
    tell(core::LayoutDetected{scenario.node.layout});
    tell(core::PodsChanged{std::make_shared<const core::PodList>(pods_)});
  }

  json::object run(const ScenarioStep& step) {
    step_ = &step;
    evicted_.clear();
    reclaimed_.clear();
    removed_images_.reset();
    ranking_.reset();

    change_pods();
    look_at_images();
    auto ended = holds_.end(step);
    drive(synchronizer_.begin(step.observed, releasing()));
    auto trimmed = trim();

    json::object result{{"at", step.at},
                        {"conditions", names(synchronizer_.conditions())},
                        {"evicted", evicted()},
                        {"reclaimed", json::array(reclaimed_.begin(), reclaimed_.end())}};
    if (removed_images_) result["imagesRemoved"] = json::array(removed_images_->begin(), removed_images_->end());
    if (ranking_) result["ranking"] = keys(*ranking_);
    if (own().holds.time.brakes() || own().holds.time.asks()) result["ended"] = std::move(ended);
    if (own().trims) result["trim"] = std::move(trimmed);
    // The kernel counts in shares of the capacity.
    if (const auto& memory = step.observed[core::Signal::MemoryAvailable];
        own().steers_oom && memory && memory->capacity > 0)
      result["oomScoreAdj"] =
          describe_steering(synchronizer_, usage_of(pods_), step.oom_score_adj, memory->capacity, now());
    if (step.admit) result["admit"] = admit(*step.admit, step.operation);
    return result;
  }

 private:
  struct Leaving {
    core::PodPtr pod;
    core::Instant killed;  ///< when it is, unless it is hurried
  };

  /// Nothing has to wake a simulation.
  void tell(const core::Event& event) { static_cast<void>(synchronizer_.tell(event, now())); }

  void drive(core::Pass pass) {
    for (core::Answer answer; const auto action = pass.resume(answer, now());)
      answer = std::visit([&](const auto& known) { return perform(known); }, *action);
  }

  core::Answer perform(const core::ReadPodUsage& action) { return core::PodsMeasured{.usage = usage_of(*action.pods)}; }

  [[nodiscard]] std::vector<std::optional<core::PodUsage>> usage_of(const core::PodList& pods) const {
    std::vector<std::optional<core::PodUsage>> result;
    for (const auto& pod : pods) {
      const auto usage = step_->usage.find(pod->key());
      result.push_back(usage == step_->usage.end() ? std::nullopt : std::optional(usage->second));
    }
    return result;
  }

  /// What would be trimmed; another pass sees what came of it, in the same moment.
  json::value trim() {
    if (!own().trims) return nullptr;
    const auto after = core::trim_after_pass(synchronizer_, step_->observed, now());
    const auto goal =
        after.goal || after.pods_go ? after.goal : core::trim_near_hard(synchronizer_.thresholds(), step_->observed);
    if (!goal) return nullptr;
    auto described = describe_trim(synchronizer_, *goal, usage_of(pods_), now());
    drive(synchronizer_.begin(step_->after_trim, releasing()));
    return described;
  }

  core::Answer perform(const core::ReclaimNode& action) {
    if (action.containers) reclaimed_.emplace_back("containers");
    if (action.images) reclaimed_.emplace_back("images");
    const bool in_vain = action.images && images_ && !remove_images();
    return core::NodeReclaimed{in_vain ? step_->observed : step_->after_reclaim};
  }

  core::Answer perform(const core::Eviction& action) {
    evicted_.push_back(describe(action));
    leaving_.push_back({action.pod, now() + action.grace_period});
    if (!action.ranking.empty()) ranking_ = action.ranking;
    return {};
  }

  core::Answer perform(const core::NoVictim& action) {
    ranking_ = action.ranking;
    return {};
  }

  // What only an agent has to do.
  core::Answer perform(const core::RateLimited&) { return {}; }
  core::Answer perform(const core::Recovered&) { return {}; }
  core::Answer perform(const core::ReportCrossing&) { return {}; }
  core::Answer perform(const core::ReportConditions&) { return {}; }
  core::Answer perform(const core::WakeAt&) { return {}; }
  core::Answer perform(const core::ArmLevels&) { return {}; }

  [[nodiscard]] const OwnSettings& own() const { return scenario_.own; }
  [[nodiscard]] core::Instant now() const { return step_ == nullptr ? core::Instant{} : step_->time; }

  void change_pods() {
    if (step_->removed.empty() && step_->added.empty()) return;
    for (const auto& key : step_->removed) {
      const auto is_removed = [&](const core::PodPtr& pod) { return pod->key() == key; };
      for (const auto& pod : pods_)
        if (is_removed(pod)) allocations_.remove(pod->uid);
      std::erase_if(pods_, is_removed);
      const auto gone =
          std::ranges::find_if(leaving_, [&](const Leaving& leaving) { return leaving.pod->key() == key; });
      if (gone == leaving_.end()) continue;
      tell(core::CleanupEnded{gone->pod->uid});
      leaving_.erase(gone);
    }
    pods_.insert(pods_.end(), step_->added.begin(), step_->added.end());
    allocations_.add(step_->added);
    tell(core::PodsChanged{std::make_shared<const core::PodList>(pods_)});
  }

  void look_at_images() {
    if (step_->images) images_ = step_->images;
    if (images_) ages_.note(*images_, now());
  }

  /// Whether any may go.
  bool remove_images() {
    removed_images_ = ages_.may_go(now(), scenario_.minimum_image_age);
    std::erase_if(*images_, [&](const core::SeenImage& image) {
      return std::ranges::find(*removed_images_, image.id) != removed_images_->end();
    });
    for (const auto& id : *removed_images_) ages_.forget(id);
    return !removed_images_->empty();
  }

  /// What evicted pods that are still there hold. None ends before its time is over.
  [[nodiscard]] std::vector<core::Releasing> releasing() const {
    std::vector<core::Releasing> result;
    for (const auto& [pod, killed] : leaving_)
      if (const auto usage = step_->usage.find(pod->key()); usage != step_->usage.end())
        result.push_back({pod->uid, usage->second.working_set.value_or(0), usage->second.processes, now() >= killed});
    return result;
  }

  static json::array names(const core::NodeConditions& conditions) {
    json::array result;
    for (const auto condition : conditions) result.emplace_back(core::name(condition));
    return result;
  }

  static json::array keys(const std::vector<core::RankedPod>& ranking) {
    json::array result;
    for (const auto& ranked : ranking) result.emplace_back(ranked.pod->key());
    return result;
  }

  json::object describe(const core::Eviction& eviction) {
    using Seconds = std::chrono::seconds;
    json::object result{{"pod", eviction.pod->key()},
                        {"gracePeriodSeconds", std::chrono::duration_cast<Seconds>(eviction.grace_period).count()},
                        {"signal", core::name(eviction.cause)},
                        {"message", eviction.message.text}};
    if (own().holds.time.brakes() || own().holds.time.asks()) result["held"] = holds_.begin(eviction, *step_);
    if (own().explains) result["explained"] = describe_reason(eviction);
    return result;
  }

  /// Null, an object, or a list where several pods exceeded their limits.
  [[nodiscard]] json::value evicted() const {
    if (evicted_.empty()) return nullptr;
    if (evicted_.size() == 1) return evicted_.front();
    return evicted_;
  }

  /// Every candidate is asked for by itself: no pod is admitted or resized, and none is evicted.
  [[nodiscard]] json::object admit(const core::PodList& candidates, admission::Operation operation) const {
    json::object result;
    for (const auto& candidate : candidates) {
      auto pod = judgeable(*candidate, scenario_.node);
      const auto* allocated = operation == admission::Operation::Resize ? find(candidate->key()) : nullptr;
      if (allocated != nullptr) pod.uid = allocated->uid;
      auto node = snapshot_for(pod, scenario_.node, scenario_.max_pods);
      node.conditions = synchronizer_.conditions();
      node.allocations = allocations_.all();
      const auto others = active_pods_besides(*candidate);
      result[candidate->name] = describe(chain_.admit(
          {.pod = pod, .other_pods = others, .node = node, .operation = operation, .allocated = allocated}));
    }
    return result;
  }

  /// Null if it is not on the node.
  [[nodiscard]] const core::Pod* find(const std::string& key) const {
    const auto found = std::ranges::find(pods_, key, [](const core::PodPtr& pod) { return pod->key(); });
    return found == pods_.end() ? nullptr : found->get();
  }

  [[nodiscard]] core::PodList active_pods_besides(const core::Pod& candidate) const {
    auto others = pods_;
    std::erase_if(others, [&](const core::PodPtr& pod) {
      return pod->key() == candidate.key() || pod->phase == "Succeeded" || pod->phase == "Failed";
    });
    return others;
  }

  static json::object describe(const admission::Decision& decision) {
    json::array preempted;
    for (const auto& pod : decision.verdict.preempted) preempted.emplace_back(pod->key());
    json::object result{{"admitted", decision.verdict.admitted},
                        {"reason", decision.verdict.reason},
                        {"message", decision.verdict.message},
                        {"handler", decision.handler},
                        {"preempted", std::move(preempted)}};
    if (const auto& given = decision.verdict.allocation; !given.empty())
      result["allocations"] = simulate::describe(given);
    return result;
  }

  const Scenario& scenario_;
  core::Synchronizer synchronizer_;
  admission::Chain chain_;
  SimulatedAllocations allocations_;
  SimulatedHolds holds_;
  core::PodList pods_;
  std::vector<Leaving> leaving_;                        // evicted, not removed yet
  std::optional<std::vector<core::SeenImage>> images_;  // absent: the scenario has told none so far
  core::ImageAges ages_;
  const ScenarioStep* step_ = nullptr;

  // What the present step came to.
  json::array evicted_;
  std::vector<std::string> reclaimed_;
  std::optional<std::vector<std::string>> removed_images_;
  std::optional<std::vector<core::RankedPod>> ranking_;
};

}  // namespace

json::array replay(const Scenario& scenario) {
  Simulation simulation{scenario};
  json::array steps;
  for (const auto& step : scenario.steps) steps.emplace_back(simulation.run(step));
  return steps;
}

}  // namespace evictd::simulate
