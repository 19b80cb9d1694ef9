#include "evictctl/tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "evictctl/paint.hpp"
#include "evictctl/text.hpp"

namespace evictd::ctl {
namespace {

std::string exclusive_memory(const v1::ContainerAllocation& given) {
  std::string text;
  for (const auto& block : given.memory())
    text += fmt::format("{}{} of {} on node {}", text.empty() ? "" : "; ", bytes_text(block.bytes()), block.type(),
                        block.numa_nodes());
  return text;
}

std::string exclusive_devices(const v1::ContainerAllocation& given) {
  std::string text;
  for (const auto& devices : given.devices())
    text += fmt::format("{}{}={}", text.empty() ? "" : "; ", devices.resource(), fmt::join(devices.ids(), ","));
  return text;
}

void print_allocations(std::ostream& out, const v1::AdmitResponse& answer, const TableLook& look) {
  Table table({{.title = "CONTAINER"}, {.title = "CPUS"}, {.title = "MEMORY"}, {.title = "DEVICES"}});
  for (const auto& given : answer.allocations())
    table.add({given.container(), given.cpus(), exclusive_memory(given), exclusive_devices(given)});
  if (table.empty()) return;
  out << '\n';
  table.print(out, look);
}

const char* denial(const v1::AdmitResponse& answer) {
  switch (answer.resize()) {
    case v1::AdmitResponse::RESIZE_DEFERRED: return "deferred";
    case v1::AdmitResponse::RESIZE_INFEASIBLE: return "infeasible";
    default: return "rejected";
  }
}

void print_answer(std::ostream& out, const v1::AdmitResponse& answer, const TableLook& look) {
  const auto verdict = answer.admitted() ? "admitted" : look.paint(Style::Bad, denial(answer));
  out << printable(key_of(answer.pod())) << ": " << verdict << '\n';
  Table handlers({{.title = "HANDLER"}, {.title = "VERDICT"}, {.title = "REASON"}, {.title = "MESSAGE"}});
  for (const auto& handler : answer.handlers()) {
    const bool rejects = handler.verdict() == "rejected";
    handlers.add({handler.handler(),
                  {handler.verdict(), rejects ? Style::Bad : Style::Plain},
                  rejects ? answer.reason() : "",
                  rejects ? answer.message() : ""});
  }
  handlers.print(out, look);
  for (const auto& victim : answer.preempted()) out << "preempts " << printable(key_of(victim)) << '\n';
  print_allocations(out, answer, look);
}

}  // namespace

void print_admission(std::ostream& out, const v1::AdmitBatchResponse& reply, const TableLook& look) {
  for (bool first = true; const auto& answer : reply.answers()) {
    if (!first) out << '\n';
    first = false;
    print_answer(out, answer, look);
  }
}

}  // namespace evictd::ctl
