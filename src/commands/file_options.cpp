#include "commands/file_options.hpp"

#include <fmt/format.h>

namespace evictd::commands {

void add_file_options(CommandLine& line, app::ConfigurationFiles& files) {
  line.option({.names = "--config",
               .meaning = fmt::format("an AgentConfiguration; otherwise {} if it exists", app::usual_agent_file),
               .type = "FILE"},
              files.agent);
  line.option({.names = "--kubelet-config",
               .meaning = "a KubeletConfiguration; otherwise the kubelet's own, where nodes usually have it",
               .type = "FILE"},
              files.kubelet);
}

}  // namespace evictd::commands
