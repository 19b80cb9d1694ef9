#include "commands/inspect.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <functional>
#include <memory>
#include <string>

#include "commands/json.hpp"
#include "config/yaml.hpp"
#include "core/error.hpp"
#include "core/quantity.hpp"
#include "os/exit_code.hpp"
#include "simulate/inspect.hpp"

namespace evictd::commands {
namespace {

struct Arguments {
  std::string file;
  std::string memory_capacity;
};

std::int64_t memory_of_this_machine() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

Result<std::int64_t> memory_capacity(const std::string& text) {
  if (text.empty()) return memory_of_this_machine();
  const auto quantity = core::Quantity::parse(text);
  if (!quantity) return fail(fmt::format("--memory-capacity: {}", quantity.error().message));
  if (quantity->value() <= 0) return fail(fmt::format("--memory-capacity: \"{}\" must be more than zero", text));
  return quantity->value();
}

int inspect_file(const Arguments& arguments) {
  const auto capacity = memory_capacity(arguments.memory_capacity);
  if (!capacity) return os::wrong_usage(capacity.error());
  const auto text = config::read_text_file(arguments.file);
  if (!text) return os::wrong_usage(text.error());
  const auto inspected = simulate::inspect_document(*text, arguments.file, *capacity);
  if (!inspected) return os::wrong_usage(inspected.error());
  return print(to_json_text(*inspected));
}

}  // namespace

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
