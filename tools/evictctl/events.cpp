#include <CLI/App.hpp>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/event_table.hpp"
#include "evictctl/interruption.hpp"
#include "evictctl/table.hpp"

namespace evictd::ctl {
namespace {

constexpr std::chrono::seconds answer_within{5};

struct Options {
  bool follow = false;
  std::uint64_t since = 0;
};

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
        table_(context.out, terminal_width(), std::chrono::system_clock::now()) {}

  Result<void> print(const v1::Event& event) {
    if (format_ == Format::Table) {
      table_.print(event);
    } else {
      const auto text = format_ == Format::Json ? to_json(event, true) : to_yaml(event);
      if (!text) return std::unexpected(text.error());
      out_ << (format_ == Format::Yaml ? "---\n" : "") << *text << '\n';
    }
    out_.flush();
    if (!out_) return fail("the events cannot be written to the standard output");
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

Result<void> show_events(const Context& context, const Options& options) {
  const Interruption::BlockedSignals signals;
  const auto client = Client::connect(context);
  if (!client) return std::unexpected(client.error());

  v1::StreamEventsRequest request;
  request.set_after_sequence(options.since);
  request.set_follow(options.follow);
  grpc::ClientContext call;
  Interruption interruption(signals, call, answer_within);
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
  if (!status.ok()) return std::unexpected(client->explain(status));
  if (options.follow) return std::unexpected(client->explain({grpc::StatusCode::UNAVAILABLE, "it ended the stream"}));
  return {};
}

}  // namespace

void add_events(CLI::App& app, Context& context) {
  const auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("events", "What happened, as far back as the agent remembers");
  command->add_flag("-f,--follow", options->follow, "Go on with what happens, until the agent ends or SIGINT comes");
  command->add_option("--since", options->since, "Only events after this number")
      ->type_name("SEQ")
      ->check([](const std::string& text) {
        return is_number(text) ? "" : "\"" + text + "\" is not the number of an event";
      });
  command->callback(
      [&context, options] { context.chosen = [&context, options] { return show_events(context, *options); }; });
}

}  // namespace evictd::ctl
