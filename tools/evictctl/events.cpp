#include <CLI/App.hpp>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "evictctl/choices.hpp"
#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/event_table.hpp"
#include "evictctl/format.hpp"
#include "evictctl/interruption.hpp"

namespace evictd::ctl {
namespace {

struct EventOptions {
  bool follow = false;
  std::uint64_t since = 0;
  std::vector<v1::Event::Kind> kinds{};
  std::vector<std::string> namespaces{};
  std::vector<std::string> pods{};
  std::vector<std::string> signals{};
};

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

/// CLI11 would take "-1" for the largest number there is.
bool is_number(const std::string& text) {
  std::uint64_t ignored = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ignored);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Shows events in the format that was asked for, each one at once.
class EventPrinter {
 public:
  explicit EventPrinter(const Context& context)
      : out_(context.out),
        format_(context.format),
        table_(context.out, context.table_look(), std::chrono::system_clock::now()) {}

  Result<void> print(const v1::Event& event) {
    if (format_ == Format::Table) {
      table_.print(event);
    } else {
      const auto text = in_format(format_, event, true);
      if (!text) return std::unexpected(text.error());
      out_ << *text;
    }
    out_.flush();
    if (!out_) return fail("the standard output cannot be written to");
    return {};
  }

 private:
  std::ostream& out_;
  Format format_;
  EventTable table_;
};

Result<void> read_all(grpc::ClientReader<v1::Event>& reader, const Context& context) {
  EventPrinter printer(context);
  for (v1::Event event; reader.Read(&event);)
    if (const auto printed = printer.print(event); !printed) return printed;
  return {};
}

v1::StreamEventsRequest request_of(const EventOptions& options) {
  v1::StreamEventsRequest request;
  request.set_after_sequence(options.since);
  request.set_follow(options.follow);
  auto& filter = *request.mutable_filter();
  for (const auto kind : options.kinds) filter.add_kinds(kind);
  filter.mutable_namespaces()->Add(options.namespaces.begin(), options.namespaces.end());
  filter.mutable_pods()->Add(options.pods.begin(), options.pods.end());
  filter.mutable_signals()->Add(options.signals.begin(), options.signals.end());
  return request;
}

Result<void> show_events(Context& context, const EventOptions& options) {
  const auto client = Client::connect(context);
  if (!client) return std::unexpected(client.error());

  const auto request = request_of(options);
  grpc::ClientContext call;
  Interruption interruption(call, answer_within);
  const auto reader = client->evictions().StreamEvents(&call, request);
  reader->WaitForInitialMetadata();
  interruption.answered();

  const auto read = read_all(*reader, context);
  if (!read) call.TryCancel();
  const auto status = reader->Finish();
  if (!read) return read;
  switch (interruption.cause()) {
    case Interruption::Cause::Signal: return {};
    case Interruption::Cause::NoAnswer:
      return std::unexpected(client->explain({grpc::StatusCode::DEADLINE_EXCEEDED, ""}));
    case Interruption::Cause::None: break;
  }
  if (!status.ok()) return std::unexpected(client->refused(context, status));
  if (options.follow) return std::unexpected(client->explain({grpc::StatusCode::UNAVAILABLE, "it ended the stream"}));
  return {};
}

}  // namespace

void add_events(CLI::App& app, Context& context) {
  const auto options = std::make_shared<EventOptions>();
  auto* command = app.add_subcommand("events", "What happened, as far back as the agent remembers");
  command->add_flag("-f,--follow", options->follow, "Go on with what happens, until the agent ends or SIGINT comes");
  command->add_option("--since", options->since, "Only events after this number")
      ->type_name("SEQ")
      ->check([](const std::string& text) {
        return is_number(text) ? "" : "\"" + text + "\" is not the number of an event";
      });
  command
      ->add_option_function<std::vector<std::string>>(
          "--kind",
          [options](const std::vector<std::string>& names) {
            for (const auto& name : names) options->kinds.push_back(*parse_kind(name));
          },
          "Only this kind, EVICTION_INTENDED say; again for more kinds. A GAP is always shown")
      ->type_name("KIND")
      ->expected(1)
      ->take_all()
      ->check([](const std::string& name) {
        return parse_kind(name) ? "" : "\"" + name + "\" is none of " + known_kinds();
      });
  const auto add_names = [&](const char* option, std::vector<std::string>& names, const char* type,
                             const char* description) {
    return command->add_option(option, names, description)->type_name(type)->expected(1)->take_all();
  };
  add_names("-n,--namespace", options->namespaces, "NAME", "Only events about pods of this namespace; again for more");
  add_names("--pod", options->pods, "POD", "Only about this pod, by name, NAMESPACE/NAME or uid; again for more");
  auto* signals =
      add_names("--signal", options->signals, "SIGNAL", "Only about this signal, memory.available say; again for more");
  context.choices.limit(*signals, signal_names());
  context.on(*command, [&context, options] { return show_events(context, *options); });
}

}  // namespace evictd::ctl
