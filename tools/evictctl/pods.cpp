#include <CLI/App.hpp>
#include <expected>
#include <memory>
#include <ostream>
#include <string>

#include "evictctl/choices.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/look.hpp"
#include "evictctl/pod_table.hpp"

namespace evictd::ctl {
namespace {

Look ranking_look(const Context& context, const std::string& signal) {
  return {.ask = [signal](const Client& client, grpc::ClientContext& call) -> Look::Answer {
            v1::RankPodsRequest request;
            request.set_signal(signal);
            auto ranking = std::make_unique<v1::RankPodsResponse>();
            if (const auto result = client.evictions().RankPods(&call, request, ranking.get()); !result.ok())
              return std::unexpected(client.explain(result));
            return ranking;
          },
          .print_table =
              [&context](std::ostream& out, const google::protobuf::Message& answer) {
                print_ranking(out, static_cast<const v1::RankPodsResponse&>(answer), context.table_look());
              }};
}

}  // namespace

void add_pods(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("pods", "Who would be evicted for a signal, the first one first, and why");
  const auto signal = std::make_shared<std::string>("memory.available");
  auto* option =
      command->add_option("-s,--signal", *signal, "What would be short")->type_name("SIGNAL")->capture_default_str();
  context.choices.limit(*option, signal_names());
  const auto watch = add_watch(*command);
  command->callback([&context, signal, watch] {
    context.chosen = [&context, signal, watch] { return look(context, *watch, ranking_look(context, *signal)); };
  });
}

}  // namespace evictd::ctl
