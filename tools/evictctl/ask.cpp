#include "evictctl/ask.hpp"

#include <sys/ioctl.h>

#include <iostream>
#include <optional>
#include <string_view>

#include "core/duration.hpp"
#include "evictctl/interruption.hpp"
#include "evictctl/paint.hpp"

namespace evictd::ctl {
namespace {

using namespace std::chrono_literals;

/// How often an answer is asked for at most: an interval that is shorter is a slip of the pen.
constexpr auto most_often = 100ms;

std::optional<std::chrono::milliseconds> parse_interval(const std::string& text) {
  const auto parsed = core::parse_duration(text);
  if (!parsed || *parsed < most_often) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::milliseconds>(*parsed);
}

/// The lines that the terminal has room for, each over the one that was there.
std::string over_the_last(std::string_view text) {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1;
  std::string drawn = "\x1b[H";
  for (std::size_t row = 1; !text.empty() && (!known || row < size.ws_row); ++row) {
    const auto end = text.find('\n');
    drawn += "\x1b[K";  // first: behind a full line it would erase the last column
    drawn += text.substr(0, end);
    drawn += '\n';
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return drawn + "\x1b[J";
}

}  // namespace

std::shared_ptr<Asking> add_watch(CLI::App& command) {
  auto asking = std::make_shared<Asking>();
  command
      .add_option_function<std::string>(
          "-w,--watch", [asking](const std::string& text) { asking->interval = parse_interval(text).value_or(2s); },
          "Go on looking, every 2s or as often as it says here")
      ->type_name("INTERVAL")
      ->expected(0, 1)
      ->default_str("2s")
      ->check([](const std::string& text) {
        return text.empty() || parse_interval(text) ? "" : "\"" + text + "\" is no time of at least 100ms, such as 1s";
      });
  return asking;
}

Result<void> show(Context& context, const Asking& asking,
                  const std::function<Result<std::string>(const Client&)>& ask) {
  const auto client = Client::connect(context, asking.access);
  if (!client) return std::unexpected(client.error());
  const bool watched = asking.interval > 0ms;
  std::optional<EndSignals> signals;
  if (watched) signals.emplace();
  const bool table = context.format == Format::Table;
  const bool redraw = watched && table && &context.out == &std::cout && obeys_sequences();
  for (bool first = true;; first = false) {
    const auto text = ask(*client);
    if (!text) return std::unexpected(text.error());
    if (redraw)
      context.out << (first ? "\x1b[2J" : "") << over_the_last(*text);
    else
      context.out << (first || !table ? "" : "\n") << *text;
    if (!context.out.flush()) return fail("the standard output cannot be written to");
    if (!watched || signals->come_within(asking.interval)) return {};
  }
}

Result<void> read_events(Context& context, const v1::StreamEventsRequest& request,
                         const std::function<Result<void>(const v1::Event&)>& take) {
  const auto client = Client::connect(context);
  if (!client) return std::unexpected(client.error());

  grpc::ClientContext call;
  Interruption interruption(call, answer_within);
  const auto reader = client->evictions().StreamEvents(&call, request);
  reader->WaitForInitialMetadata();
  interruption.answered();

  Result<void> taken;
  for (v1::Event event; taken && reader->Read(&event);) taken = take(event);
  if (!taken) call.TryCancel();
  const auto status = reader->Finish();
  if (!taken) return taken;
  if (interruption.cause() == Interruption::Cause::Signal) return {};
  if (interruption.cause() == Interruption::Cause::NoAnswer)
    return std::unexpected(client->explain({grpc::StatusCode::DEADLINE_EXCEEDED, ""}));
  if (!status.ok()) return std::unexpected(client->refused(context, status));
  if (request.follow()) return std::unexpected(client->explain({grpc::StatusCode::UNAVAILABLE, "it ended the stream"}));
  return {};
}

}  // namespace evictd::ctl
