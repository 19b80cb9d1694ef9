#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "evictctl/answers.hpp"
#include "evictctl/ask.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/input.hpp"
#include "evictctl/paint.hpp"

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
  Table table({left("CONTAINER"), left("CPUS"), left("MEMORY"), left("DEVICES")});
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
  Table handlers({left("HANDLER"), left("VERDICT"), left("REASON"), left("MESSAGE")});
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

/// Pods that make room may take their grace periods and half of that. Beyond this one asks again.
constexpr std::chrono::minutes room_within{10};

struct AdmitOptions {
  std::string file;
  std::string operation = "add";
  bool reserve = false;
};

/// For people.
std::string name_of(const std::string& file) { return file == "-" ? "the standard input" : file; }

Result<std::string> read_pods(const std::string& file) {
  std::ifstream opened;
  if (file != "-") opened.open(file);
  auto text = read_input(file == "-" ? std::cin : opened);
  if (!text) return std::unexpected(text.error().in(name_of(file)));
  return text;
}

Result<void> admit(Context& context, const AdmitOptions& options) {
  v1::AdmitBatchRequest request;
  auto text = read_pods(options.file);
  context.bad_input = !text;
  if (!text) return std::unexpected(text.error());
  request.add_pods(*std::move(text));
  request.set_reserve(options.reserve);
  if (options.operation == "resize") request.set_operation(v1::AdmitRequest::RESIZE);
  const auto reply = ask(context, &v1::EvictionService::Stub::AdmitBatch, request, print_admission,
                         {.access = options.reserve ? Access::Change : Access::Look,
                          .within = options.reserve ? room_within : answer_within});
  if (!reply) return std::unexpected(context.bad_input ? reply.error().in(name_of(options.file)) : reply.error());
  context.denied =
      !std::ranges::all_of(reply->answers(), [](const v1::AdmitResponse& answer) { return answer.admitted(); });
  return {};
}

}  // namespace

void print_admission(std::ostream& out, const v1::AdmitBatchResponse& reply, const TableLook& look) {
  for (bool first = true; const auto& answer : reply.answers()) {
    if (!std::exchange(first, false)) out << '\n';
    print_answer(out, answer, look);
  }
}

void add_admit(CLI::App& app, Context& context) {
  auto options = std::make_shared<AdmitOptions>();
  auto* command = app.add_subcommand("admit", "Whether pods may run on the node now; exits with 1 if one may not");
  command->add_option("-f,--file", options->file, "The pods, YAML or JSON; \"-\": the standard input")
      ->type_name("FILE")
      ->required();
  auto* operation = command
                        ->add_option("--operation", options->operation,
                                     "add (they are to come) or resize (pods that are there are to become this)")
                        ->type_name("OPERATION")
                        ->capture_default_str();
  context.choices.limit(*operation, {"add", "resize"});
  command->add_flag("--reserve", options->reserve,
                    "Let it take effect: what the pods are given is theirs, and who has to make room is evicted first, "
                    "for which it waits 10 minutes at most");
  context.on(*command, [&context, options] { return admit(context, *options); });
}

}  // namespace evictd::ctl
