#include "commands/run.hpp"

#include <memory>

#include "app/configuration.hpp"
#include "app/run.hpp"
#include "commands/file_options.hpp"

namespace evictd::commands {

Command run_command() {
  return {.name = "run",
          .description = "Guard this node until SIGTERM",
          .declare =
              [](CommandLine& line) {
                struct Options {
                  app::ConfigurationFiles files;
                  bool dry_run = false;
                };
                const auto options = std::make_shared<Options>();
                add_file_options(line, options->files);
                line.flag("--dry-run", "decide and report, touch no pod", options->dry_run);
                return [options] { return app::run_agent(options->files, options->dry_run); };
              },
          .by_default = true};
}

}  // namespace evictd::commands
