#include "evictctl/look.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "core/duration.hpp"
#include "evictctl/format.hpp"
#include "evictctl/interruption.hpp"

namespace evictd::ctl {
namespace {

using namespace std::chrono_literals;

/// An answer is a copy of what the agent has at hand; one that needs longer is stuck.
constexpr auto most_often = 100ms;

std::optional<std::chrono::milliseconds> parse_interval(const std::string& text) {
  const auto parsed = core::parse_duration(text);
  if (!parsed || *parsed < most_often) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::milliseconds>(*parsed);
}

Result<std::string> text_of(const Context& context, bool watched, const Look& what,
                            const google::protobuf::Message& answer) {
  if (context.format == Format::Table) {
    std::ostringstream table;
    what.print_table(table, answer);
    return table.str();
  }
  return in_format(context.format, answer, watched);
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

/// Between two looks. SIGINT and SIGTERM are blocked meanwhile.
bool wait_or_signalled(std::chrono::milliseconds time) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  const timespec limit{.tv_sec = time / 1s, .tv_nsec = (time % 1s) / 1ns};
  return ::sigtimedwait(&set, nullptr, &limit) > 0;
}

Look::Answer ask(const Client& client, const Look& what) {
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + answer_within);
  return what.ask(client, call);
}

Result<void> look_once(const Context& context, const Client& client, const Look& what) {
  const auto answer = ask(client, what);
  if (!answer) return std::unexpected(answer.error());
  const auto text = text_of(context, false, what, **answer);
  if (!text) return std::unexpected(text.error());
  context.out << *text;
  return {};
}

}  // namespace

std::shared_ptr<Watch> add_watch(CLI::App& command) {
  auto watch = std::make_shared<Watch>();
  command
      .add_option_function<std::string>(
          "-w,--watch", [watch](const std::string& text) { watch->interval = parse_interval(text).value_or(2s); },
          "Go on looking, every 2s or as often as it says here")
      ->type_name("INTERVAL")
      ->expected(0, 1)
      ->default_str("2s")
      ->check([](const std::string& text) {
        return text.empty() || parse_interval(text) ? "" : "\"" + text + "\" is no time of at least 100ms, such as 1s";
      });
  return watch;
}

Result<void> look(Context& context, const Watch& watch, const Look& what) {
  if (watch.interval == 0ms) {
    const auto client = Client::connect(context);
    return client ? look_once(context, *client, what) : std::unexpected(client.error());
  }
  const Interruption::BlockedSignals signals;  // before gRPC makes its threads
  const auto client = Client::connect(context);
  if (!client) return std::unexpected(client.error());
  const bool redraw = context.format == Format::Table && &context.out == &std::cout && ::isatty(STDOUT_FILENO) == 1;
  bool first = true;
  do {
    const auto answer = ask(*client, what);
    if (!answer) return std::unexpected(answer.error());
    const auto text = text_of(context, true, what, **answer);
    if (!text) return std::unexpected(text.error());
    if (redraw)
      context.out << (first ? "\x1b[2J" : "") << over_the_last(*text);
    else
      context.out << (first || context.format != Format::Table ? "" : "\n") << *text;
    first = false;
    if (!context.out.flush()) return fail("the standard output cannot be written to");
  } while (!wait_or_signalled(watch.interval));
  return {};
}

}  // namespace evictd::ctl
