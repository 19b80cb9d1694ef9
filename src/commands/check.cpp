#include "commands/check.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "app/check_parts.hpp"
#include "app/configuration.hpp"
#include "app/host_report.hpp"
#include "app/live_thresholds.hpp"
#include "app/runtime_offers.hpp"
#include "commands/file_options.hpp"
#include "commands/json.hpp"
#include "config/agent_configuration.hpp"
#include "config/shutdown_groups.hpp"
#include "core/duration.hpp"
#include "core/eviction_settings.hpp"
#include "core/quantity.hpp"
#include "core/shutdown_plan.hpp"
#include "core/threshold.hpp"
#include "os/exit_code.hpp"

namespace json = boost::json;

namespace evictd::commands {
namespace {

/// The shortest number that reads back as the same float32: 0.1 for 10%, which in double would be 0.10000000149.
json::value fraction(float value) { return std::stod(fmt::format("{}", value)); }

json::object describe(const core::ThresholdValue& value, bool with_bytes) {
  if (const auto* percentage = std::get_if<core::Percentage>(&value.value))
    return {{"percentage", fraction(percentage->fraction)}};
  const auto& quantity = std::get<core::Quantity>(value.value);
  json::object result{{"quantity", quantity.to_string()}};
  if (with_bytes) result["bytes"] = quantity.value();
  return result;
}

json::object describe(const core::Threshold& threshold) {
  return {{"signal", core::name(threshold.signal)},
          {"operator", "LessThan"},
          {"value", describe(threshold.value, true)},
          {"gracePeriodSeconds", std::chrono::duration_cast<std::chrono::seconds>(threshold.grace).count()},
          {"minReclaim", threshold.min_reclaim ? json::value(describe(*threshold.min_reclaim, false)) : json::value()},
          {"source", core::name(threshold.source)}};
}

json::array describe_thresholds(const app::Configuration& configuration) {
  json::array result;
  for (const auto& threshold : configuration.policy.thresholds) {
    auto described = describe(threshold);
    described["origin"] = app::origin_of(configuration, threshold);
    result.push_back(std::move(described));
  }
  return result;
}

json::value describe_kubelet(const app::Configuration& configuration) {
  if (configuration.watch_only) return json::string("not found, so nothing is evicted: " + *configuration.watch_only);
  const auto& documents = configuration.kubelet_sources.documents;
  if (documents.empty()) return "none: the kubelet's defaults";
  if (documents.size() == 1) return json::string(documents.front());
  return json::array(documents.begin(), documents.end());
}

/// In what order pods end when the node shuts down, and what they are given.
json::array describe(const core::ShutdownGroups& groups) {
  json::array result;
  for (const auto& group : groups)
    result.push_back(json::object{
        {"priority", group.priority},
        {"gracePeriodSeconds", std::chrono::duration_cast<std::chrono::seconds>(group.grace_period).count()}});
  return result;
}

json::object describe_agent(const config::AgentConfiguration& agent) {
  json::object result;
  for (const auto& key : config::describe(agent)) {
    auto* section = &result;
    std::string_view name = key.path;
    for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
      section = &section->emplace(name.substr(0, dot), json::object{}).first->value().as_object();
      name.remove_prefix(dot + 1);
    }
    (*section)[name] = key.value;
  }
  return result;
}

json::array drop_in_names(const app::Configuration& configuration) {
  json::array names;
  for (const auto& drop_in : configuration.threshold_drop_ins) names.emplace_back(drop_in.name);
  return names;
}

json::array describe_found(const app::Configuration& configuration) {
  json::array lines(configuration.found.begin(), configuration.found.end());
  if (configuration.no_allocation) lines.emplace_back(*configuration.no_allocation);
  return lines;
}

int check(const app::ConfigurationFiles& files, bool as_json) {
  const auto configuration = app::load_configuration(files, app::ask_cgroup_driver);
  if (!configuration) return os::wrong_usage(configuration.error());
  if (const auto checked = app::check_parts(*configuration); !checked) return os::wrong_usage(checked.error());
  const auto shutdown = config::shutdown_groups(configuration->kubelet);
  if (!shutdown) return os::wrong_usage(shutdown.error());
  const json::object report{{"kubeletConfiguration", describe_kubelet(*configuration)},
                            {"agentConfiguration", configuration->agent_file.value_or("none: defaults")},
                            {"found", describe_found(*configuration)},
                            {"thresholdDropIns", drop_in_names(*configuration)},
                            {"thresholds", describe_thresholds(*configuration)},
                            {"shutdown", describe(*shutdown)},
                            {"agent", describe_agent(configuration->agent)},
                            {"host", app::describe_host(configuration->agent, core::total_grace_period(*shutdown))}};
  return print(as_json ? to_json_text(report) : to_yaml_text(report));
}

}  // namespace

Command check_command() {
  return {.name = "check",
          .description = "Validate the configuration, print what is in force and what the host offers",
          .declare = [](CommandLine& line) {
            struct Options {
              app::ConfigurationFiles files;
              std::string format = "yaml";
            };
            const auto options = std::make_shared<Options>();
            add_file_options(line, options->files);
            line.option(
                {.names = "-o,--output", .meaning = "yaml or json", .type = "FORMAT", .one_of = {"yaml", "json"}},
                options->format);
            return [options] { return check(options->files, options->format == "json"); };
          }};
}

}  // namespace evictd::commands
