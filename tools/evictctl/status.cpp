#include <CLI/App.hpp>
#include <chrono>

#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/status_table.hpp"
#include "evictctl/table.hpp"

namespace evictd::ctl {
namespace {

/// A status is a copy of what the agent has at hand; one that needs longer is stuck.
constexpr std::chrono::seconds answer_within{5};

Result<void> show_status(const Context& context) {
  const auto client = Client::connect(context);
  if (!client) return std::unexpected(client.error());

  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + answer_within);
  v1::NodeStatus status;
  if (const auto result = client->evictions().GetNodeStatus(&call, {}, &status); !result.ok())
    return std::unexpected(client->explain(result));

  if (context.format == Format::Table) {
    print_status(context.out, status, terminal_width(), std::chrono::system_clock::now());
    return {};
  }
  const auto text = context.format == Format::Json ? to_json(status, false) : to_yaml(status);
  if (!text) return std::unexpected(text.error());
  context.out << *text << (text->ends_with('\n') ? "" : "\n");
  return {};
}

}  // namespace

void add_status(CLI::App& app, Context& context) {
  app.add_subcommand("status", "How the node and the agent stand")->callback([&context] {
    context.chosen = [&context] { return show_status(context); };
  });
}

}  // namespace evictd::ctl
