#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "evictctl/ask.hpp"
#include "evictctl/choices.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/tables.hpp"

namespace evictd::ctl {

void add_pods(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("pods", "Who would be evicted for a signal, the first one first, and why");
  const auto signal = std::make_shared<std::string>("memory.available");
  auto* option =
      command->add_option("-s,--signal", *signal, "What would be short")->type_name("SIGNAL")->capture_default_str();
  context.choices.limit(*option, signal_names());
  context.on(*command, [&context, signal, asking = add_watch(*command)] {
    v1::RankPodsRequest request;
    request.set_signal(*signal);
    return ask(context, &v1::EvictionService::Stub::RankPods, request, print_ranking, *asking);
  });
}

}  // namespace evictd::ctl
