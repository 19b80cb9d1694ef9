#include "config/agent_configuration.hpp"

#include <yaml-cpp/yaml.h>

#include <string>

#include "config/agent_keys.hpp"
#include "target.hpp"

// evictd's own configuration. Every value is printed in the form it is written in.

namespace evictd::fuzz {
namespace {

constexpr std::string_view header = "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\n";
constexpr std::string_view origin = "agent.yaml";

}  // namespace

void run(std::string_view input) {
  // Few mutations would keep the header.
  const auto configuration = config::parse_agent_configuration(std::string(header) + std::string(input), origin);
  if (!is_good(configuration)) return;
  for (const auto& key : config::agent_keys()) {
    const auto printed = key.print(*configuration);
    auto again = *configuration;
    const auto read = key.read(config::Value(YAML::Node(printed), std::string(origin)), again);
    check(is_good(read), "a printed value can be read: " + key.path + ": " + (read ? "" : read.error().message));
    check(key.print(again) == printed, "and is the same");
  }
}

}  // namespace evictd::fuzz
