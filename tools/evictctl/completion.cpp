#include <CLI/App.hpp>
#include <memory>

#include "core/error.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/completion/completion_model.hpp"

namespace evictd::ctl {

/// The script is made of what the program declares when it runs, so it is never behind it.
void add_completion(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("completion", "Print the script by which a shell completes evictctl");
  const auto shell = std::make_shared<std::string>();
  auto* option = command->add_option("shell", *shell, "bash, zsh or fish")->type_name("SHELL")->required();
  context.choices.limit(*option, {"bash", "zsh", "fish"});
  command->callback([&app, &context, shell] {
    context.chosen = [&app, &context, shell]() -> Result<void> {
      const auto program = completion_model(app, context.choices);
      context.out << (*shell == "bash"  ? bash_completion(program)
                      : *shell == "zsh" ? zsh_completion(program)
                                        : fish_completion(program));
      return {};
    };
  });
}

}  // namespace evictd::ctl
