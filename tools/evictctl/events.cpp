#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "evictctl/answers.hpp"
#include "evictctl/ask.hpp"
#include "evictctl/choices.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/format.hpp"
#include "os/numbers.hpp"

namespace evictd::ctl {
namespace {

/// As wide as the longest name of a kind, and as six digits of numbers.
const std::vector<Column> event_columns{right("SEQ", 6), left("TIME", 12), left("EVENT", 18), left("WHAT")};

/// What changed, where the message does not tell: "memory.available: 100Mi -> 500Mi" says it shorter than both lines.
std::string audit_text(const v1::Event& event) {
  const auto& audit = event.audit();
  std::string text = event.message();
  if (text.empty()) text = fmt::format("{}: {}: {}", audit.caller(), audit.call(), audit.outcome());
  if (audit.before_size() != audit.after_size()) return text;
  for (int i = 0; i < audit.before_size(); ++i) {
    const std::string_view before = audit.before(i);
    const std::string_view after = audit.after(i);
    if (before == after || text.contains(after) || text.contains(before)) continue;
    // The part up to ": " is said once where both begin with it.
    const auto colon = before.find(": ");
    const auto label = before.substr(0, colon == std::string_view::npos ? 0 : colon + 2);
    text += fmt::format("; {} -> {}", before, after.substr(after.starts_with(label) ? label.size() : 0));
  }
  return text;
}

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
Result<void> show_events(Context& context, const v1::StreamEventsRequest& request) {
  EventTable table(context.out, context.table_look(), std::chrono::system_clock::now());
  return read_events(context, request, [&](const v1::Event& event) -> Result<void> {
    if (context.format == Format::Table) {
      table.print(event);
    } else {
      const auto text = in_format(context.format, event, true);
      if (!text) return std::unexpected(text.error());
      context.out << *text;
    }
    if (!context.out.flush()) return fail("the standard output cannot be written to");
    return {};
  });
}

}  // namespace

EventTable::EventTable(std::ostream& out, const TableLook& look, TimePoint now)
    : out_(out), look_(look), day_(day_text(now)) {}

void EventTable::print(const v1::Event& event) {
  if (!std::exchange(begun_, true)) print_row(out_, event_columns, titles(event_columns), look_);
  const auto time = to_time_point(event.time());
  if (const auto day = day_text(time); day != day_) {
    out_ << "-- " << day << " --\n";
    day_ = day;
  }
  print_row(out_, event_columns,
            {std::to_string(event.sequence()),
             time_text(time),
             {kind_text(event.kind()), event_style(event.kind())},
             event_text(event)},
            look_);
}

std::string event_text(const v1::Event& event) {
  std::string text = event.has_audit() ? audit_text(event) : event.message();
  text.erase(text.find_last_not_of(' ') + 1);  // the kubelet's wording ends in a blank
  if (event.stages().empty()) return text;
  const auto last = std::ranges::max_element(event.stages(), {}, [](const auto& stage) { return stage.second; });
  const auto& source = event.wake().source();
  return fmt::format("{} [{}+{:.1f} ms]", text, source.empty() ? "" : source + " ",
                     static_cast<double>(last->second) / 1000);
}

std::string kind_text(v1::Event::Kind kind) {
  const auto& name = v1::Event::Kind_Name(kind);
  return name.empty() ? std::to_string(kind) : name;
}

Style event_style(v1::Event::Kind kind) {
  switch (kind) {
    case v1::Event::EVICTION_INTENDED:
    case v1::Event::EVICTION_FAILED: return Style::Bad;
    case v1::Event::EVICTION_DELAYED:
    case v1::Event::KERNEL_OOM:
    case v1::Event::BRAKED:
    case v1::Event::THRESHOLD_CROSSED:
    case v1::Event::SOURCE_DEGRADED:
    case v1::Event::GAP:
    case v1::Event::NODE_SHUTDOWN: return Style::Warning;
    default: return Style::Plain;
  }
}

void add_events(CLI::App& app, Context& context) {
  const auto request = std::make_shared<v1::StreamEventsRequest>();
  request->set_after_sequence(0);  // both have a meaning where they are absent
  request->set_follow(false);
  auto* command = app.add_subcommand("events", "What happened, as far back as the agent remembers");
  command->add_flag_callback(
      "-f,--follow", [request] { request->set_follow(true); },
      "Go on with what happens, until the agent ends or SIGINT comes");
  command
      // CLI11 would take "-1" for the largest number there is, and "010" for 8.
      ->add_option_function<std::string>(
          "--since", [request](const std::string& text) { request->set_after_sequence(*os::parse_number(text)); },
          "Only events after this number")
      ->type_name("SEQ")
      ->check([](const std::string& text) {
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
  auto* signals =
      add_filter("--signal", "SIGNAL", "Only about this signal, memory.available or preemption say; again for more",
                 [](auto& filter, const std::string& signal) { filter.add_signals(signal); });
  context.choices.limit(*signals, cause_names());
  context.on(*command, [&context, request] { return show_events(context, *request); });
}

}  // namespace evictd::ctl
