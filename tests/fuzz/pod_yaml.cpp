#include <boost/json.hpp>

#include "commands/json.hpp"
#include "config/yaml.hpp"
#include "core/qos.hpp"
#include "pods/manifest.hpp"
#include "simulate/inspect.hpp"
#include "target.hpp"

// Manifests of pods in YAML, and what evictd says of such a pod.

namespace evictd::fuzz {

void run(std::string_view input) {
  constexpr std::int64_t capacity = std::int64_t{4} << 30;
  const auto pods = pods::parse_pods(input, "pod.yaml");
  if (!is_good(pods)) return;
  check(!pods->empty(), "a file without pods is an error");
  for (const auto& pod : *pods) {
    for (const auto& container : pod.containers) {
      const auto score = core::oom_score_adj(pod, container, capacity);
      check(score >= -1000 && score <= 1000, "an oom_score_adj is one that the kernel takes");
    }
    const auto described = simulate::inspect(pod, capacity);
    check(boost::json::parse(commands::to_json_text(described)) == described, "what is printed as JSON is JSON");
    check(is_good(config::parse_yaml(commands::to_yaml_text(described), "inspect")), "and YAML is YAML");
  }
}

}  // namespace evictd::fuzz
