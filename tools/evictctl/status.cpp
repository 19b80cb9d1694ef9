#include <CLI/App.hpp>
#include <chrono>
#include <ostream>

#include "evictctl/ask.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/tables.hpp"

namespace evictd::ctl {

void add_status(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("status", "How the node and the agent stand");
  context.on(*command, [&context, asking = add_watch(*command)] {
    const auto print = [](std::ostream& out, const v1::NodeStatus& status, const TableLook& look) {
      print_status(out, status, look, std::chrono::system_clock::now());
    };
    return ask(context, &v1::EvictionService::Stub::GetNodeStatus, v1::GetNodeStatusRequest(), print, *asking);
  });
}

}  // namespace evictd::ctl
