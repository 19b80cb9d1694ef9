#include "commands/file_options.hpp"

#include <string>

namespace evictd::commands {

void add_file_options(CommandLine& line, app::ConfigurationFiles& files) {
  line.option({.names = "--config",
               .meaning = std::string("an AgentConfiguration; otherwise ") + app::usual_agent_file + " if it exists",
               .type = "FILE"},
              files.agent);
  line.option({.names = "--kubelet-config",
               .meaning = "a KubeletConfiguration; otherwise the kubelet's own, where nodes usually have it",
               .type = "FILE"},
              files.kubelet);
}

}  // namespace evictd::commands
