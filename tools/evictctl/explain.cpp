#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "evictctl/answers.hpp"
#include "evictctl/ask.hpp"
#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/format.hpp"

namespace evictd::ctl {
namespace {

using Samples = google::protobuf::RepeatedPtrField<v1::MemorySample>;

std::string growth_text(std::string_view what, const Samples& samples) {
  const auto time = to_nanoseconds(samples.begin()->before_kill()) - to_nanoseconds(samples.rbegin()->before_kill());
  return fmt::format("{} went from {} to {} within {}", what, bytes_text(samples.begin()->bytes()),
                     bytes_text(samples.rbegin()->bytes()), duration_text(time));
}

std::string stall_text(std::string_view who, const v1::MemoryStall& stall) {
  return fmt::format("{} waited for memory: some tasks {:.1f}% of 10s and {:.1f}% of 60s, all {:.1f}% and {:.1f}%", who,
                     stall.some_avg10(), stall.some_avg60(), stall.full_avg10(), stall.full_avg60());
}

/// "default/web (uses 312Mi, requests 100Mi, priority 0)"
std::string ranked_text(const v1::RankedPod& pod, std::string_view unit, const std::string& why) {
  return fmt::format("{} (uses {}{}, requests {}, priority {}){}", key_of(pod.pod()), pod.at_most() ? "at most " : "",
                     amount_text(unit, pod.usage()), pod.request() == 0 ? "nothing" : bytes_text(pod.request()),
                     pod.priority(), why.empty() ? "" : ": " + why);
}

class Writer {
 public:
  Writer(std::ostream& out, const Story& story, const TableLook& look)
      : out_{out},
        story_{story},
        look_{look},
        intended_{last(v1::Event::EVICTION_INTENDED)},
        explained_{last(v1::Event::EXPLAINED).explained()} {}

  void tell() {
    const auto& first = story_.events.front();
    const auto time = to_time_point(first.time());
    out_ << look_.paint(Style::Strong, printable(key_of(first.pod())))
         << printable(fmt::format(" was evicted for {} on {} at {} (event {})", first.signal(), day_text(time),
                                  time_text(time), story_.id))
         << '\n';
    if (intended_.has_eviction_intended()) tell_shortage();
    if (intended_.eviction_intended().ranking_size() > 0) tell_choice();
    if (explained_.why().saved_by_size() > 0) title("What would have saved it");
    for (const auto& line : explained_.why().saved_by()) say("- " + line);
    if (explained_.snapshot().has_taken_before_kill()) tell_held(explained_.snapshot());
    tell_end();
  }

 private:
  /// Of this kind; an empty one where there is none.
  [[nodiscard]] const v1::Event& last(v1::Event::Kind kind) const {
    const auto found = std::ranges::find(story_.events.rbegin(), story_.events.rend(), kind, &v1::Event::kind);
    return found == story_.events.rend() ? v1::Event::default_instance() : *found;
  }
  void title(std::string_view text) { out_ << '\n' << look_.paint(Style::Title, text) << '\n'; }
  void say(std::string_view text) {
    for (const auto& line : wrapped(printable(text), std::max<std::size_t>(look_.width, 22) - 2))
      out_ << "  " << line << '\n';
  }

  void tell_shortage() {
    title("What was short");
    const auto& intent = intended_.eviction_intended();
    if (!intent.has_threshold()) return say(intended_.message());
    const auto& unit = intent.threshold().unit();
    say(fmt::format("{}: {} of {} were available, less than {}", intent.threshold().signal(),
                    amount_text(unit, intent.observation().available()),
                    amount_text(unit, intent.observation().capacity()), intent.threshold().value()));
    const auto since = explained_.why().has_short_since() ? std::optional(to_time_point(explained_.why().short_since()))
                                                          : story_.short_since;
    if (since)
      say(fmt::format("since {}, {} before it was chosen", time_text(*since),
                      duration_text(to_time_point(intended_.time()) - *since)));
  }

  void tell_choice() {
    title("Why this pod and not the next");
    const auto& intent = intended_.eviction_intended();
    const auto& ranking = intent.ranking();
    const auto& unit = intent.threshold().unit();
    const auto victim =
        std::ranges::find_if(ranking, [&](const auto& ranked) { return ranked.pod().uid() == intended_.pod().uid(); });
    if (victim == ranking.end()) return say(fmt::format("{} pods were ranked", intent.candidates()));
    say(ranked_text(*victim, unit, explained_.why().standing()));
    const auto& next = explained_.why().next();
    const auto other = std::find_if(victim + 1, ranking.end(), [](const auto& each) { return !each.critical(); });
    if (!explained_.why().has_next())
      return say(other == ranking.end() ? "no other pod could go" : "next: " + ranked_text(*other, unit, {}));
    say("next: " + ranked_text(next, unit, next.why()));
    say("what decided: " + explained_.why().rule());
  }

  void tell_held(const v1::PodSnapshot& snapshot) {
    const auto age = to_nanoseconds(snapshot.taken_before_kill());
    title(fmt::format("What it held, {} {} the kill: {}", duration_text(age.count() < 0 ? -age : age),
                      age.count() < 0 ? "after" : "before", bytes_text(snapshot.usage())));
    Table table({left("  PROCESS"), right("RSS"), right("ANON"), right("SHMEM")});
    for (const auto& process : snapshot.processes())
      table.add({"  " + process.command(), bytes_text(process.rss()), bytes_text(process.anon()),
                 bytes_text(process.shmem())});
    if (!table.empty()) table.print(out_, look_);
    std::string rows = "memory.stat:";
    for (const auto& row : snapshot.memory()) rows += fmt::format(" {} {}", row.name(), bytes_text(row.bytes()));
    say(rows);
    if (snapshot.more_processes()) say(fmt::format("only {} processes were looked at", snapshot.processes_read()));
    if (snapshot.pod_usage_size() > 1) say(growth_text("the pod", snapshot.pod_usage()));
    if (snapshot.node_available_size() > 1) say(growth_text("what was available", snapshot.node_available()));
    if (snapshot.has_node_stall()) say(stall_text("the node", snapshot.node_stall()));
    if (snapshot.has_pod_stall()) say(stall_text("the pod", snapshot.pod_stall()));
  }

  void tell_end() {
    title("What came back, and what did not");
    if (intended_.eviction_intended().dry_run()) return say("this was a dry run: nothing was done to it");
    const auto& released = last(v1::Event::MEMORY_RELEASED);
    const auto& cleaned = last(v1::Event::CLEANUP_DONE);
    const auto& killed = last(v1::Event::CONTAINERS_KILLED).containers_killed();
    say(killed.method().empty() ? "it is not known to have been killed" : "killed by " + killed.method());
    if (released.has_memory_released()) {
      const auto bytes = released.memory_released().released_bytes();
      const auto& snapshot = explained_.snapshot();
      const auto left = to_nanoseconds(snapshot.taken_before_kill()).count() < 0 ? 0 : snapshot.usage() - bytes;
      say(fmt::format("memory back: {}{}", bytes_text(bytes),
                      left > 0 ? fmt::format("; not back by then: {}, as file cache and shared memory are not, until "
                                             "somebody needs them or the pod's volumes go",
                                             bytes_text(left))
                               : ""));
      if (snapshot.staying() > 0) say("in a tmpfs, until its volumes are removed: " + bytes_text(snapshot.staying()));
    }
    if (cleaned.cleanup_done().timed_out())
      say(cleaned.message());
    else
      say(cleaned.has_cleanup_done()
              ? "cleaned up after " + duration_text(to_nanoseconds(cleaned.cleanup_done().duration()))
              : "its cleanup is not known to have ended");
    for (const auto& event : story_.events)
      if (event.kind() == v1::Event::EVICTION_FAILED) say("failed: " + event.message());
  }

  std::ostream& out_;
  const Story& story_;
  const TableLook& look_;
  const v1::Event& intended_;
  const v1::Explained& explained_;
};

/// The newest eviction of the pod, with all that came of it.
Result<Story> latest_eviction(Context& context, const std::string& pod) {
  v1::StreamEventsRequest request;
  request.set_after_sequence(0);
  request.set_follow(false);
  request.mutable_filter()->add_pods(pod);
  Story story;
  const auto read = read_events(context, request, [&](const v1::Event& event) -> Result<void> {
    if (event.eviction_id() == 0 || event.eviction_id() < story.id) return {};
    if (event.eviction_id() > story.id) story = {.id = event.eviction_id()};
    story.events.push_back(event);
    return {};
  });
  if (!read) return std::unexpected(read.error());
  if (story.id == 0)
    return fail("no eviction of " + pod + " is remembered (evictctl events shows how far back that goes)");
  // Since when it was short is told by EXPLAINED, or else by an event that is about no pod.
  request.clear_filter();
  request.mutable_filter()->add_kinds(v1::Event::THRESHOLD_CROSSED);
  const auto crossings = read_events(context, request, [&](const v1::Event& event) -> Result<void> {
    if (event.sequence() < story.id && event.signal() == story.events.front().signal())
      story.short_since = to_time_point(event.time());
    return {};
  });
  return crossings ? Result<Story>(std::move(story)) : std::unexpected(crossings.error());
}

Result<void> explain(Context& context, const std::string& pod) {
  const auto story = latest_eviction(context, pod);
  if (!story) return std::unexpected(story.error());
  if (context.format == Format::Table) print_story(context.out, *story, context.table_look());
  for (const auto& event : story->events) {
    if (context.format == Format::Table) break;
    const auto text = in_format(context.format, event, true);
    if (!text) return std::unexpected(text.error());
    context.out << *text;
  }
  return {};
}

}  // namespace

void print_story(std::ostream& out, const Story& story, const TableLook& look) { Writer{out, story, look}.tell(); }

void add_explain(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("explain", "Why a pod was evicted last, what it held, what would have saved it");
  const auto pod = std::make_shared<std::string>();
  command->add_option("pod", *pod, "By name, NAMESPACE/NAME or uid")->type_name("POD")->required();
  command->add_flag_callback(
      "--json", [&context] { context.format = Format::Json; }, "The eviction's events, one a line; as -o json");
  context.on(*command, [&context, pod] { return explain(context, *pod); });
}

}  // namespace evictd::ctl
