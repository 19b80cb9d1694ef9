#include "commands/cri_proxy.hpp"

#include <memory>

#include "app/configuration.hpp"
#include "app/cri_proxy.hpp"
#include "commands/file_options.hpp"

namespace evictd::commands {

Command cri_proxy_command() {
  return {.name = "cri-proxy",
          .description = "Stand before the container runtime and start only pods that the agent admits",
          .declare = [](CommandLine& line) {
            const auto files = std::make_shared<app::ConfigurationFiles>();
            add_file_options(line, *files);
            return [files] { return app::run_cri_proxy(*files); };
          }};
}

}  // namespace evictd::commands
