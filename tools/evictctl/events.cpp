#include <CLI/App.hpp>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "evictctl/choices.hpp"
#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/event_table.hpp"
#include "evictctl/format.hpp"
#include "evictctl/interruption.hpp"
#include "os/numbers.hpp"

namespace evictd::ctl {
namespace {

/// "EVICTION_INTENDED", or as it is easier to type: "eviction-intended".
std::optional<v1::Event::Kind> parse_kind(std::string name) {
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  v1::Event::Kind kind{};
  if (!v1::Event::Kind_Parse(name, &kind) || kind == v1::Event::KIND_UNSPECIFIED) return std::nullopt;
  return kind;
}

/// Those that the agent tells of its own accord.
std::string known_kinds() {
  std::string names;
  for (int number = v1::Event::Kind_MIN; number <= v1::Event::Kind_MAX; ++number) {
    if (!v1::Event::Kind_IsValid(number)) continue;
    const auto kind = static_cast<v1::Event::Kind>(number);
    if (kind == v1::Event::KIND_UNSPECIFIED || kind == v1::Event::SNAPSHOT || kind == v1::Event::HEARTBEAT) continue;
    names += (names.empty() ? "" : ", ") + v1::Event::Kind_Name(kind);
  }
  return names;
}

/// Shows each event at once, in the format that was asked for.
Result<void> print_all(grpc::ClientReader<v1::Event>& reader, const Context& context) {
  EventTable table(context.out, context.table_look(), std::chrono::system_clock::now());
  for (v1::Event event; reader.Read(&event);) {
    if (context.format == Format::Table) {
      table.print(event);
    } else {
      const auto text = in_format(context.format, event, true);
      if (!text) return std::unexpected(text.error());
      context.out << *text;
    }
    if (!context.out.flush()) return fail("the standard output cannot be written to");
  }
  return {};
}

Result<void> show_events(Context& context, const v1::StreamEventsRequest& request) {
  const auto client = Client::connect(context);
  if (!client) return std::unexpected(client.error());

  grpc::ClientContext call;
  Interruption interruption(call, answer_within);
  const auto reader = client->evictions().StreamEvents(&call, request);
  reader->WaitForInitialMetadata();
  interruption.answered();

  const auto printed = print_all(*reader, context);
  if (!printed) call.TryCancel();
  const auto status = reader->Finish();
  if (!printed) return printed;
  if (interruption.cause() == Interruption::Cause::Signal) return {};
  if (interruption.cause() == Interruption::Cause::NoAnswer)
    return std::unexpected(client->explain({grpc::StatusCode::DEADLINE_EXCEEDED, ""}));
  if (!status.ok()) return std::unexpected(client->refused(context, status));
  if (request.follow()) return std::unexpected(client->explain({grpc::StatusCode::UNAVAILABLE, "it ended the stream"}));
  return {};
}

}  // namespace

void add_events(CLI::App& app, Context& context) {
  const auto request = std::make_shared<v1::StreamEventsRequest>();
  request->set_after_sequence(0);  // both have a meaning where they are absent
  request->set_follow(false);
  auto* command = app.add_subcommand("events", "What happened, as far back as the agent remembers");
  command->add_flag_callback(
      "-f,--follow", [request] { request->set_follow(true); },
      "Go on with what happens, until the agent ends or SIGINT comes");
  command
      ->add_option_function<std::uint64_t>(
          "--since", [request](std::uint64_t number) { request->set_after_sequence(number); },
          "Only events after this number")
      ->type_name("SEQ")
      ->check([](const std::string& text) {  // CLI11 would take "-1" for the largest number there is
        return os::parse_number(text) ? "" : "\"" + text + "\" is not the number of an event";
      });
  const auto add_filter = [&](const char* option, const char* type, const char* description, auto add) {
    return command
        ->add_option_function<std::vector<std::string>>(
            option,
            [request, add](const std::vector<std::string>& words) {
              for (const auto& word : words) add(*request->mutable_filter(), word);
            },
            description)
        ->type_name(type)
        ->expected(1)
        ->take_all();
  };
  add_filter("--kind", "KIND", "Only this kind, EVICTION_INTENDED say; again for more kinds. A GAP is always shown",
             [](auto& filter, const std::string& name) { filter.add_kinds(*parse_kind(name)); })
      ->check([](const std::string& name) {
        return parse_kind(name) ? "" : "\"" + name + "\" is none of " + known_kinds();
      });
  add_filter("-n,--namespace", "NAME", "Only events about pods of this namespace; again for more",
             [](auto& filter, const std::string& name) { filter.add_namespaces(name); });
  add_filter("--pod", "POD", "Only about this pod, by name, NAMESPACE/NAME or uid; again for more",
             [](auto& filter, const std::string& pod) { filter.add_pods(pod); });
  auto* signals = add_filter("--signal", "SIGNAL", "Only about this signal, memory.available say; again for more",
                             [](auto& filter, const std::string& signal) { filter.add_signals(signal); });
  context.choices.limit(*signals, signal_names());
  context.on(*command, [&context, request] { return show_events(context, *request); });
}

}  // namespace evictd::ctl
