#include "commands/inspect.hpp"

#include <unistd.h>

#include <boost/json.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "os/exit_code.hpp"

#include "commands/json.hpp"
#include "config/yaml.hpp"
#include "core/error.hpp"
#include "core/pod_resources.hpp"
#include "core/qos.hpp"
#include "core/quantity.hpp"
#include "pods/manifest.hpp"

namespace json = boost::json;

namespace evictd::commands {
namespace {

struct Arguments {
  std::string file;
  std::string memory_capacity;
};

json::object describe(const core::ResourceList& amounts) {
  json::object result;
  for (const auto& [resource, quantity] : amounts) result[resource] = quantity.to_string();
  return result;
}

std::int64_t memory_of_this_machine() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

Result<std::int64_t> memory_capacity(const std::string& text) {
  if (text.empty()) return memory_of_this_machine();
  const auto quantity = core::Quantity::parse(text);
  if (!quantity) return fail(quantity.error(), "--memory-capacity");
  if (quantity->value() <= 0) return fail("--memory-capacity: \"" + text + "\" must be more than zero");
  return quantity->value();
}

int inspect_file(const Arguments& arguments) {
  const auto capacity = memory_capacity(arguments.memory_capacity);
  if (!capacity) return os::wrong_usage(capacity.error());
  const auto text = config::read_text_file(arguments.file);
  if (!text) return os::wrong_usage(text.error());
  const auto pods = pods::parse_pods(*text, arguments.file);
  if (!pods) return os::wrong_usage(pods.error());

  if (pods->size() == 1) return print(to_json_text(inspect(pods->front(), *capacity)));
  json::array all;
  for (const auto& pod : *pods) all.emplace_back(inspect(pod, *capacity));
  return print(to_json_text(all));
}

}  // namespace

json::object inspect(const core::Pod& pod, std::int64_t memory_capacity) {
  json::array containers;
  for (const auto* list : {&pod.containers, &pod.init_containers})
    for (const auto& container : *list)
      containers.push_back(
          {{"name", container.name}, {"oomScoreAdj", core::oom_score_adj(pod, container, memory_capacity)}});
  return {{"qosClass", core::name(core::qos_class(pod))}, {"critical", core::is_critical(pod)},
          {"priority", pod.priority.value_or(0)},         {"requests", describe(core::pod_requests(pod))},
          {"limits", describe(core::pod_limits(pod))},    {"containers", std::move(containers)}};
}

Command inspect_command() {
  return {.name = "inspect",
          .description = "Print how evictd and the kernel will rate a pod, as JSON",
          .declare = [](CommandLine& line) -> std::function<int()> {
            auto arguments = std::make_shared<Arguments>();
            line.option({.names = "-f,--file",
                         .meaning = "The pod, YAML or JSON. One pod gives an object; several documents, or a List, "
                                    "give a list",
                         .type = "POD.yaml",
                         .required = true},
                        arguments->file);
            line.option({.names = "--memory-capacity",
                         .meaning = "The node's memory, such as 4Gi, for oomScoreAdj (default: this machine's)",
                         .type = "QUANTITY"},
                        arguments->memory_capacity);
            return [arguments] { return inspect_file(*arguments); };
          }};
}

}  // namespace evictd::commands
