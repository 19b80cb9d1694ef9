#include "commands/disarm.hpp"

#include <memory>

#include "app/configuration.hpp"
#include "app/disarm.hpp"
#include "app/runtime_offers.hpp"
#include "commands/file_options.hpp"
#include "os/exit_code.hpp"

namespace evictd::commands {
namespace {

int disarm(const app::ConfigurationFiles& files) {
  const auto configuration = app::load_configuration(files, app::ask_cgroup_driver);
  if (!configuration) return os::wrong_usage(configuration.error());
  const auto done = app::disarm(configuration->agent);
  return done ? print(*done) : os::failed(done.error());
}

}  // namespace

Command disarm_command() {
  return {.name = "disarm",
          .description =
              "Lift a fence or tripwire (notifier.v2), let go of pods that were held, and give back "
              "oom_score_adj, that an evictd left behind",
          .declare = [](CommandLine& line) {
            const auto files = std::make_shared<app::ConfigurationFiles>();
            add_file_options(line, *files);
            return [files] { return disarm(*files); };
          }};
}

}  // namespace evictd::commands
