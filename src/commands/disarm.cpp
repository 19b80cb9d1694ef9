#include "commands/disarm.hpp"

#include <memory>

#include "app/configuration.hpp"
#include "app/disarm.hpp"
#include "commands/file_options.hpp"
#include "os/exit_code.hpp"
#include "os/log.hpp"

namespace evictd::commands {
namespace {

int disarm(const app::ConfigurationFiles& files) {
  const auto own = app::own_settings(files);
  // What is left must go even so: this is run when an evictd has died, and nobody is there to mend a file.
  if (own.unreadable) os::log_warning("{}; the defaults say where to look", own.unreadable->message);
  const auto done = app::disarm(own.agent);
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
