#include "simulate/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "admission/allocation/machine_topology.hpp"
#include "config/agent_configuration.hpp"
#include "config/agent_keys.hpp"
#include "config/chain_settings.hpp"
#include "config/fields.hpp"
#include "config/kubelet_configuration.hpp"
#include "core/duration.hpp"
#include "core/oom_steering.hpp"
#include "core/quantity.hpp"
#include "core/signal.hpp"
#include "pods/manifest.hpp"
#include "simulate/known_pods.hpp"
#include "simulate/scenario_usage.hpp"

namespace evictd::simulate {
namespace {

using config::Field;
using config::into;
using config::keep;
using config::read_fields;
using config::UnknownKeys;
using config::Value;

/// The parts of a scenario, to be looked at one after the other: steps refer to pods, whatever comes first in the file.
struct Document {
  std::optional<Value> config{};
  std::optional<Value> node{};
  std::optional<Value> pods{};
  std::optional<Value> steps{};
};

struct Step {
  std::optional<Value> at{};
  std::optional<Value> images{};
  std::optional<Value> node{};
  std::optional<Value> usage{};
  std::optional<Value> reclaim{};
  std::optional<Value> trim{};
  std::optional<Value> answered{};
  std::optional<Value> idle{};
  std::optional<Value> oom_score_adj{};
  std::optional<Value> add{};
  std::optional<Value> remove{};
  std::optional<Value> admit{};
  std::optional<Value> operation{};
};

/// As the agent reads its key of this path, within the same bounds.
Result<void> read_agent_key(std::string_view path, const Value& value, config::AgentConfiguration& target) {
  return std::ranges::find(config::agent_keys(), path, &config::AgentKey::path)->read(value, target);
}

Result<void> read_brake(const Value& value, HoldSettings& target) {
  using A = config::AgentConfiguration;
  static constexpr auto time = [](const Value& text, A& into) {
    return read_agent_key("eviction.brake.time", text, into);
  };
  static constexpr auto headroom = [](const Value& text, A& into) {
    return read_agent_key("eviction.brake.headroom", text, into);
  };
  static constexpr auto floor = [](const Value& text, A& into) {
    return read_agent_key("eviction.brake.floor", text, into);
  };
  static constexpr Field<A> fields[]{{"time", time}, {"headroom", headroom}, {"floor", floor}};
  A agent;
  if (auto result = read_fields(value, agent, fields, UnknownKeys::reject); !result) return result;
  target.time.brake = agent.brake.time;
  target.time.floor = static_cast<double>(agent.brake.floor) / 100;
  target.headroom = agent.brake.headroom;
  return {};
}

Result<void> read_hooks(const Value& value, HoldSettings& target) {
  using A = config::AgentConfiguration;
  static constexpr auto time = [](const Value& text, A& into) {
    return read_agent_key("eviction.hooks.time", text, into);
  };
  static constexpr Field<A> fields[]{{"time", time}};
  A agent;
  if (auto result = read_fields(value, agent, fields, UnknownKeys::reject); !result) return result;
  target.time.hooks = agent.hooks.time;
  return {};
}

Result<void> read_config(const Value& value, Scenario& scenario, config::KubeletConfiguration& kubelet) {
  using Own = OwnSettings;
  struct Config {
    Own evictd{};
  };
  static constexpr Field<Own> own_fields[]{{"inFlightReclaim", into<&Own::in_flight_reclaim>},
                                           {"backOff", into<&Own::back_off>},
                                           {"brake", into<&Own::holds, read_brake>},
                                           {"hooks", into<&Own::holds, read_hooks>},
                                           {"trim", into<&Own::trims>},
                                           {"steerOom", into<&Own::steers_oom>},
                                           {"explain", into<&Own::explains>}};
  static constexpr auto read_own = [](const Value& own, Config& target) {
    return read_fields(own, target.evictd, own_fields, UnknownKeys::reject);
  };
  static constexpr Field<Config> fields[]{{"evictd", read_own}};

  Config config;
  if (auto result = read_fields(value, config, fields, UnknownKeys::pass_over); !result) return result;
  scenario.own = config.evictd;
  if (auto result = config::store(config::read_kubelet_configuration(value), kubelet); !result) return result;
  return config::store(core::make_policy(kubelet.eviction), scenario.policy);
}

/// What admission goes by, from the configuration and the node together.
Result<void> read_admission(const config::KubeletConfiguration& kubelet, Scenario& scenario) {
  const auto topology = scenario.node.topology.value_or(admission::MachineTopology{});
  scenario.max_pods = kubelet.max_pods;
  if (auto result = config::store(config::chain_settings(kubelet, topology, scenario.node.devices), scenario.admission);
      !result)
    return result;
  if (const auto chain = admission::kubelet_chain(scenario.admission); !chain) return std::unexpected(chain.error());
  return {};
}

Result<void> read_observation(const Value& value, std::optional<core::Observation>& target) {
  struct Numbers {
    std::optional<core::Quantity> available{};
    std::optional<core::Quantity> capacity{};
    std::optional<core::Duration> time{};
  };
  using N = Numbers;
  static constexpr Field<N> fields[]{
      {"available", into<&N::available>}, {"capacity", into<&N::capacity>}, {"time", into<&N::time>}};
  Numbers numbers;
  if (auto result = read_fields(value, numbers, fields, UnknownKeys::reject); !result) return result;
  target.reset();
  // As in the kubelet, half an observation is none.
  if (!numbers.available || !numbers.capacity) return {};
  target = core::Observation{.available = numbers.available->value(), .capacity = numbers.capacity->value()};
  if (numbers.time) target->time = core::Instant{*numbers.time};
  return {};
}

Result<void> read_observations(const std::optional<Value>& value, core::Observations& target) {
  if (!value) return {};
  const auto entries = value->entries(": ");
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [name, entry] : *entries) {
    const auto signal = core::parse_signal(name);
    if (!signal) return std::unexpected(entry.error(fmt::format("unsupported eviction signal {}", name)));
    if (entry.is_null()) continue;
    if (auto result = read_observation(entry, target[*signal]); !result) return result;
  }
  return {};
}

Result<core::PodList> read_pods(const std::optional<Value>& value,
                                pods::Requests requests = pods::Requests::Allocated) {
  core::PodList pods;
  if (!value) return pods;
  const auto items = value->items();
  if (!items) return std::unexpected(items.error());
  for (const auto& item : *items) {
    auto pod = pods::read_pod(item, requests);
    if (!pod) return std::unexpected(pod.error());
    // Evictions under way are known by the pod's uid.
    if (pod->uid.empty()) pod->uid = pod->key();
    if (std::ranges::any_of(pods, [&](const core::PodPtr& other) { return other->key() == pod->key(); }))
      return std::unexpected(item.error(fmt::format("{} stands here a second time", pod->key())));
    pods.push_back(std::make_shared<const core::Pod>(*std::move(pod)));
  }
  return pods;
}

/// Names of pods, to their keys.
template <class Keys>
Result<void> read_names(const std::optional<Value>& value, const KnownPods& known, Keys& keys) {
  if (!value) return {};
  const auto items = value->items();
  if (!items) return std::unexpected(items.error());
  for (const auto& item : *items) {
    const auto name = item.text();
    if (!name) return std::unexpected(name.error());
    const auto pod = known.find(item, *name);
    if (!pod) return std::unexpected(pod.error());
    keys.insert(keys.end(), (*pod)->key());
  }
  return {};
}

Result<void> read_usage(const std::optional<Value>& value, const KnownPods& known, ScenarioStep& step) {
  if (!value) return {};
  const auto entries = value->entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [name, entry] : *entries) {
    const auto pod = known.find(entry, name);
    if (!pod) return std::unexpected(pod.error());
    if (entry.is_null()) continue;
    auto usage = read_pod_usage(entry, **pod);
    if (!usage) return std::unexpected(usage.error());
    step.usage[(*pod)->key()] = *std::move(usage);
  }
  return {};
}

Result<void> read_oom_score_adj(const std::optional<Value>& value, const KnownPods& known, ScenarioStep& step) {
  if (!value) return {};
  const auto entries = value->entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [name, entry] : *entries) {
    const auto pod = known.find(entry, name);
    if (!pod) return std::unexpected(pod.error());
    const auto chosen = entry.integer(-core::most_adj, core::most_adj);
    if (!chosen) return std::unexpected(chosen.error());
    step.oom_score_adj[(*pod)->key()] = static_cast<int>(*chosen);
  }
  return {};
}

Result<void> read_operation(const std::optional<Value>& value, admission::Operation& operation) {
  if (!value) return {};
  const auto text = value->text();
  if (!text) return std::unexpected(text.error());
  if (*text != "add" && *text != "resize")
    return std::unexpected(value->error(fmt::format("\"{}\" where \"add\" or \"resize\" is expected", *text)));
  operation = *text == "add" ? admission::Operation::Add : admission::Operation::Resize;
  return {};
}

/// To be resized is what the spec wants, whatever the status says that the pod was given.
Result<void> read_admit(const std::optional<Value>& value, ScenarioStep& step) {
  if (!value) return {};
  const bool is_resize = step.operation == admission::Operation::Resize;
  auto pods = read_pods(value, is_resize ? pods::Requests::Desired : pods::Requests::Allocated);
  if (!pods) return std::unexpected(pods.error());
  // The answers are told apart by name alone.
  for (std::size_t i = 1; i < pods->size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if ((*pods)[i]->name == (*pods)[j]->name)
        return std::unexpected(value->error(fmt::format("two pods are called \"{}\"", (*pods)[i]->name)));
  step.admit = *std::move(pods);
  return {};
}

Result<void> read_time(const Value& value, const std::vector<ScenarioStep>& before, ScenarioStep& step) {
  const auto text = value.text();
  if (!text) return std::unexpected(text.error());
  const auto time = value.duration();
  if (!time) return std::unexpected(time.error());
  step.at = *text;
  step.time = core::Instant{*time};
  const auto previous = before.empty() ? core::Instant{} : before.back().time;
  if (step.time < previous)
    return std::unexpected(value.error(
        fmt::format("\"{}\" lies before {}: times rise", *text, before.empty() ? "the start" : before.back().at)));
  return {};
}

Result<void> read_image(const Value& value, core::SeenImage& image) {
  static constexpr Field<core::SeenImage> fields[]{{"name", into<&core::SeenImage::id>},
                                                   {"used", into<&core::SeenImage::used>}};
  if (auto result = read_fields(value, image, fields, UnknownKeys::reject); !result) return result;
  if (image.id.empty()) return std::unexpected(value.error("name is missing"));
  return {};
}

Result<void> read_images(const std::optional<Value>& value, ScenarioStep& step) {
  if (!value) return {};
  auto& images = step.images.emplace();
  if (auto result = config::read_list<read_image>(*value, images); !result) return result;
  std::set<std::string_view> names;
  for (const auto& image : images)
    if (!names.insert(image.id).second)
      return std::unexpected(value->error(fmt::format("two images are called \"{}\"", image.id)));
  return {};
}

Result<ScenarioStep> read_step(const Value& value, const std::vector<ScenarioStep>& before, KnownPods& known) {
  using S = Step;
  static constexpr Field<S> fields[]{{"at", keep<&S::at>},
                                     {"node", keep<&S::node>},
                                     {"usage", keep<&S::usage>},
                                     {"reclaim", keep<&S::reclaim>},
                                     {"add", keep<&S::add>},
                                     {"remove", keep<&S::remove>},
                                     {"admit", keep<&S::admit>},
                                     {"operation", keep<&S::operation>},
                                     {"images", keep<&S::images>},
                                     {"trim", keep<&S::trim>},
                                     {"answered", keep<&S::answered>},
                                     {"idle", keep<&S::idle>},
                                     {"oomScoreAdj", keep<&S::oom_score_adj>}};
  Step parts;
  if (auto result = read_fields(value, parts, fields, UnknownKeys::reject); !result)
    return std::unexpected(result.error());
  if (!parts.at) return std::unexpected(value.error("at is missing"));

  ScenarioStep step;
  if (auto result = read_time(*parts.at, before, step); !result) return std::unexpected(result.error());
  if (auto result = read_names(parts.remove, known, step.removed); !result) return std::unexpected(result.error());
  for (const auto& key : step.removed) known.remove(key);
  auto added = read_pods(parts.add);
  if (!added) return std::unexpected(added.error());
  for (const auto& pod : *added)
    if (known.is_on_node(pod->key()))
      return std::unexpected(parts.add->error(pod->key() + " is on the node already: remove it first"));
  step.added = *std::move(added);
  known.add(step.added);
  if (auto result = read_images(parts.images, step); !result) return std::unexpected(result.error());
  if (auto result = read_observations(parts.node, step.observed); !result) return std::unexpected(result.error());
  step.after_reclaim = step.observed;
  if (auto result = read_observations(parts.reclaim, step.after_reclaim); !result)
    return std::unexpected(result.error());
  if (auto result = read_usage(parts.usage, known, step); !result) return std::unexpected(result.error());
  step.after_trim = step.observed;
  if (auto result = read_observations(parts.trim, step.after_trim); !result) return std::unexpected(result.error());
  if (auto result = read_names(parts.answered, known, step.answered); !result) return std::unexpected(result.error());
  if (auto result = read_names(parts.idle, known, step.idle); !result) return std::unexpected(result.error());
  if (auto result = read_oom_score_adj(parts.oom_score_adj, known, step); !result)
    return std::unexpected(result.error());
  if (auto result = read_operation(parts.operation, step.operation); !result) return std::unexpected(result.error());
  if (auto result = read_admit(parts.admit, step); !result) return std::unexpected(result.error());
  return step;
}

Result<Scenario> read_scenario(const Value& document) {
  using D = Document;
  static constexpr Field<D> fields[]{
      {"config", keep<&D::config>}, {"node", keep<&D::node>}, {"pods", keep<&D::pods>}, {"steps", keep<&D::steps>}};
  Document parts;
  if (auto result = read_fields(document, parts, fields, UnknownKeys::reject); !result)
    return std::unexpected(result.error());
  if (!parts.steps) return std::unexpected(document.error("steps is missing"));

  Scenario scenario{.policy = *core::make_policy({})};
  config::KubeletConfiguration kubelet;
  if (parts.config)
    if (auto result = read_config(*parts.config, scenario, kubelet); !result) return std::unexpected(result.error());
  scenario.minimum_image_age = kubelet.image_minimum_gc_age;
  if (parts.node)
    if (auto result = config::store(read_scenario_node(*parts.node), scenario.node); !result)
      return std::unexpected(result.error());
  if (auto result = read_admission(kubelet, scenario); !result)
    return std::unexpected(parts.config.value_or(document).error(result.error()));
  auto pods = read_pods(parts.pods);
  if (!pods) return std::unexpected(pods.error());
  scenario.pods = *std::move(pods);

  KnownPods known;
  known.add(scenario.pods);
  const auto steps = parts.steps->items();
  if (!steps) return std::unexpected(steps.error());
  for (const auto& value : *steps) {
    auto step = read_step(value, scenario.steps, known);
    if (!step) return std::unexpected(step.error());
    scenario.steps.push_back(*std::move(step));
  }
  return scenario;
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, std::string_view origin) {
  const auto document = config::parse_yaml(text, origin);
  if (!document) return std::unexpected(document.error());
  if (document->is_null()) return fail(Error{"there is no scenario in it"}, origin);
  return read_scenario(*document);
}

}  // namespace evictd::simulate
