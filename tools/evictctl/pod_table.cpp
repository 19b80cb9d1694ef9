#include "evictctl/tables.hpp"

#include "evictctl/paint.hpp"
#include "evictctl/text.hpp"

namespace evictd::ctl {

void print_ranking(std::ostream& out, const v1::RankPodsResponse& ranking, const TableLook& look) {
  Table table({{.title = "#", .right = true},
               {.title = "POD"},
               {.title = "QOS"},
               {.title = "PRIO", .right = true},
               {.title = "USAGE", .right = true},
               {.title = "REQUEST", .right = true},
               {.title = "UID", .wide = true},
               {.title = "WHY"}});
  const auto numbers = places(ranking);
  for (int i = 0; i < ranking.pods_size(); ++i)
    table.add(ranking_cells(ranking, i, numbers[static_cast<std::size_t>(i)]));
  table.print(out, look, "nobody: there is no pod on the node that is not on its way out");
}

std::vector<std::string> places(const v1::RankPodsResponse& ranking) {
  std::vector<std::string> numbers;
  int place = 0;
  for (const auto& pod : ranking.pods()) numbers.push_back(pod.critical() ? "-" : std::to_string(++place));
  return numbers;
}

/// Usage is a bound where it says "<=". For inodes the request is one of ephemeral storage, as the kubelet has it.
std::vector<Cell> ranking_cells(const v1::RankPodsResponse& ranking, int index, const std::string& place) {
  const auto& pod = ranking.pods(index);
  const auto style = pod.critical() ? Style::Faint : place == "1" ? Style::Strong : Style::Plain;
  return {{place, style},
          {key_of(pod.pod()), style},
          {pod.qos_class(), style},
          {std::to_string(pod.priority()), style},
          {(pod.at_most() ? "<=" : "") + amount_text(ranking.unit(), pod.usage()), style},
          {pod.request() == 0 ? "-" : bytes_text(pod.request()), style},
          {pod.pod().uid(), style},
          {pod.why(), style}};
}

}  // namespace evictd::ctl
