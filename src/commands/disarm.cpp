#include "commands/disarm.hpp"

#include <memory>

#include "app/configuration.hpp"
#include "app/disarm.hpp"
#include "commands/file_options.hpp"
#include "os/exit_code.hpp"
#include "os/log.hpp"

namespace evictd::commands {
namespace {

struct Options {
  app::ConfigurationFiles files;
  bool if_noted = false;
};

int disarm(const Options& options) {
  const auto own = app::own_settings(options.files);
  // What is left must go even so: this is run when an evictd has died, and nobody is there to mend a file.
  if (own.unreadable) os::log_warning("{}; the defaults say where to look", own.unreadable->message);
  if (options.if_noted && !app::is_something_left(own.agent)) return 0;
  const auto [outcome, is_guarded] = app::disarm(own.agent);
  if (outcome) return print(*outcome);
  // The unit of an evictd that was refused beside the one that runs has nothing to do, and did not fail.
  return is_guarded && options.if_noted ? print(outcome.error().message) : os::failed(outcome.error());
}

}  // namespace

Command disarm_command() {
  return {.name = "disarm",
          .description =
              "Lift a fence or tripwire (notifier.v2), let go of pods that were held, and give back "
              "oom_score_adj, that an evictd left behind; none may run",
          .declare = [](CommandLine& line) {
            const auto options = std::make_shared<Options>();
            add_file_options(line, options->files);
            line.flag("--if-noted", "do nothing where no evictd has noted that something may be left, or one runs",
                      options->if_noted);
            return [options] { return disarm(*options); };
          }};
}

}  // namespace evictd::commands
