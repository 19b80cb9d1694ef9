#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "evictctl/answers.hpp"
#include "evictctl/ask.hpp"
#include "evictctl/choices.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/paint.hpp"

namespace evictd::ctl {

void print_ranking(std::ostream& out, const v1::RankPodsResponse& ranking, const TableLook& look) {
  Table table({right("#"), left("POD"), left("QOS"), right("PRIO"), right("USAGE"), right("REQUEST"),
               in_wide(left("UID")), left("WHY")});
  for (auto& row : ranking_rows(ranking)) table.add(std::move(row));
  table.print(out, look, "nobody: there is no pod on the node that is not on its way out");
}

/// Usage is a bound where it says "<=". For inodes the request is one of ephemeral storage, as the kubelet has it.
std::vector<std::vector<Cell>> ranking_rows(const v1::RankPodsResponse& ranking) {
  std::vector<std::vector<Cell>> rows;
  for (int places = 0; const auto& pod : ranking.pods()) {
    const auto place = pod.critical() ? "-" : std::to_string(++places);
    const auto style = pod.critical() ? Style::Faint : place == "1" ? Style::Strong : Style::Plain;
    rows.push_back({{place, style},
                    {key_of(pod.pod()), style},
                    {pod.qos_class(), style},
                    {std::to_string(pod.priority()), style},
                    {(pod.at_most() ? "<=" : "") + amount_text(ranking.unit(), pod.usage()), style},
                    {pod.request() == 0 ? "-" : bytes_text(pod.request()), style},
                    {pod.pod().uid(), style},
                    {pod.why(), style}});
  }
  return rows;
}

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
