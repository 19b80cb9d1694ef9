#include <CLI/App.hpp>
#include <chrono>
#include <expected>
#include <memory>
#include <ostream>

#include "evictctl/commands.hpp"
#include "evictctl/look.hpp"
#include "evictctl/status_table.hpp"

namespace evictd::ctl {
namespace {

Look status_look(const Context& context) {
  return {.ask = [](const Client& client, grpc::ClientContext& call) -> Look::Answer {
            auto status = std::make_unique<v1::NodeStatus>();
            if (const auto result = client.evictions().GetNodeStatus(&call, {}, status.get()); !result.ok())
              return std::unexpected(client.explain(result));
            return status;
          },
          .print_table =
              [&context](std::ostream& out, const google::protobuf::Message& answer) {
                print_status(out, static_cast<const v1::NodeStatus&>(answer), context.table_look(),
                             std::chrono::system_clock::now());
              }};
}

}  // namespace

void add_status(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("status", "How the node and the agent stand");
  const auto watch = add_watch(*command);
  command->callback([&context, watch] {
    context.chosen = [&context, watch] { return look(context, *watch, status_look(context)); };
  });
}

}  // namespace evictd::ctl
