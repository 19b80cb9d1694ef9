#include "evictctl/top/view.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "evictctl/text.hpp"
#include "evictctl/top/sections.hpp"

namespace evictd::ctl::view_test {
namespace {

using namespace std::chrono_literals;

const TimePoint now{1'000'000s};

v1::SignalStatus& add_signal(v1::NodeStatus& status, const std::string& name, std::int64_t available,
                             std::int64_t capacity) {
  auto& signal = *status.add_signals();
  signal.set_signal(name);
  signal.set_unit(name.starts_with("pid.") ? "pids" : name.ends_with("inodesFree") ? "inodes" : "bytes");
  signal.set_available(available);
  signal.set_capacity(capacity);
  return signal;
}

v1::ThresholdStatus& add_threshold(v1::SignalStatus& signal, std::int64_t value, bool hard = true) {
  auto& status = *signal.add_thresholds();
  status.mutable_threshold()->set_resolved(value);
  if (!hard) status.mutable_threshold()->mutable_grace_period()->set_seconds(90);
  return status;
}

void add_pod(v1::RankPodsResponse& ranking, const std::string& name, std::int64_t usage, const std::string& why) {
  auto& pod = *ranking.add_pods();
  pod.mutable_pod()->set_namespace_("default");
  pod.mutable_pod()->set_name(name);
  pod.set_usage(usage);
  pod.set_qos_class("BestEffort");
  pod.set_why(why);
}

void add_event(TopState& state, v1::Event::Kind kind, const std::string& message) {
  auto& event = state.events.emplace_back();
  event.set_kind(kind);
  event.set_message(message);
  event.mutable_time()->set_seconds(now.time_since_epoch() / 1s);
}

TopState busy_node() {
  TopState state;
  auto& status = state.status.emplace();
  status.set_version("1.2.3");
  status.mutable_started()->set_seconds((now.time_since_epoch() - 192min) / 1s);
  status.set_pods(3);
  status.set_evictions(2);
  status.mutable_runtime()->set_endpoint("unix:///run/c.sock");
  status.mutable_runtime()->set_connected(true);
  auto& pressure = *status.add_conditions();
  pressure.set_type("MemoryPressure");
  auto& memory = add_signal(status, "memory.available", 512 << 20, 1 << 30);
  memory.set_fill_rate(10 << 20);
  add_threshold(memory, 256 << 20);
  add_threshold(memory, 384 << 20, false);
  add_threshold(add_signal(status, "nodefs.available", 90LL << 30, 100LL << 30), 10LL << 30);
  add_signal(status, "imagefs.inodesFree", 6'000'000, 6'500'000);
  add_threshold(add_signal(status, "pid.available", 30'000, 32'768), 1000);
  state.ranking.set_signal("memory.available");
  state.ranking.set_unit("bytes");
  add_pod(state.ranking, "bloat", 312 << 20, "best effort, uses 312Mi");
  add_pod(state.ranking, "vital", 256 << 20, "critical: never evicted");
  state.ranking.mutable_pods(1)->set_critical(true);
  add_pod(state.ranking, "chill", 20 << 20, "best effort, uses 20Mi");
  add_event(state, v1::Event::THRESHOLD_CROSSED, "memory.available<384Mi: 383.9 MiB available");
  add_event(state, v1::Event::CLEANUP_DONE, "default/web: cleaned up after 199 ms");
  return state;
}

std::string all(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

/// The line that begins so, once marks and blanks are left out.
std::string line_with(const std::vector<std::string>& lines, const std::string& words) {
  const auto found =
      std::ranges::find_if(lines, [&](const auto& line) { return line.find(words) != std::string::npos; });
  return found == lines.end() ? "" : *found;
}

const bool in_utc = [] {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  return true;
}();

TEST_CASE("at 80x24 all parts have their place") {
  CHECK(all(render(busy_node(), {.columns = 80, .rows = 24}, now)) ==
        " evictd 1.2.3, up 3h12m  3 pods, 2 evictions                           13:46:40 \n"
        " no pressure\n"
        "\n"
        " SIGNAL             IN USE                      AVAIL EVICTS<      RATE    LEFT\n"
        "▶memory.available   ████████████▌··╎··┃······   512Mi   384Mi    10Mi/s     12s\n"
        " nodefs.available   ██▌···················┃··    90Gi    10Gi         -       -\n"
        " imagefs.inodesFree █▉·······················      6M       -         -       -\n"
        " pid.available      ██▏·····················┃     30k      1k         -       -\n"
        "\n"
        " WHO GOES FIRST for memory.available ─────────────────────────────────── 3 pods \n"
        "   # POD              USAGE REQUEST WHY                                         \n"
        "   1 default/bloat    312Mi       - best effort, uses 312Mi                     \n"
        "   - default/vital    256Mi       - critical: never evicted                     \n"
        "   2 default/chill     20Mi       - best effort, uses 20Mi                      \n"
        "\n"
        " EVENTS ────────────────────────────────────────────────────────────────────────\n"
        " 13:46:40 THRESHOLD_CROSSED  memory.available<384Mi: 383.9 MiB available\n"
        " 13:46:40 CLEANUP_DONE       default/web: cleaned up after 199 ms\n"
        "\n\n\n\n\n"
        "  q  quit   ↑↓  signal   ?  help \n");
}

TEST_CASE("every screen is filled exactly, none is run over, and the smallest show what matters most") {
  auto state = busy_node();
  add_pod(state.ranking, std::string(253, 'n'), 1, "uses 312Mi more than it asked for");
  add_event(state, v1::Event::EVICTION_INTENDED, std::string(500, 'x'));
  for (const bool help : {false, true})
    for (const bool utf8 : {false, true})
      for (std::size_t columns = 1; columns <= 200; columns += columns < 50 ? 1 : 37)
        for (std::size_t rows = 1; rows <= 60; rows += rows < 30 ? 1 : 15) {
          state.help = help;
          const auto lines = render(state, {.columns = columns, .rows = rows, .utf8 = utf8}, now);
          REQUIRE(lines.size() == rows);
          for (const auto& line : lines) REQUIRE(ctl::columns(line) <= columns);
        }
  const auto small = render(busy_node(), {.columns = 40, .rows = 10}, now);
  CHECK(line_with(small, "memory.available").find("█") != std::string::npos);
  CHECK(!line_with(small, "default/bloat").empty());
  CHECK(!line_with(small, "cleaned up").empty());
}

TEST_CASE("a large screen has more columns and longer names") {
  const auto lines = render(busy_node(), {.columns = 200, .rows = 60}, now);
  const auto title = line_with(lines, "SIGNAL");
  for (const char* column : {"IN USE", "AVAIL", "OF", "EVICTS<", "RATE", "LEFT"})
    CHECK(title.find(column) != std::string::npos);
  CHECK(line_with(lines, "USAGE").find("PRIORITY") != std::string::npos);
  CHECK(line_with(lines, "USAGE").find("QOS") != std::string::npos);
}

TEST_CASE("the bar ends where the usage does, and has a mark at each threshold") {
  const auto bar = [](std::int64_t available, bool utf8) {
    v1::SignalStatus signal;
    signal.set_available(available);
    signal.set_capacity(100);
    add_threshold(signal, 10);
    add_threshold(signal, 30, false);
    const Screen screen{.columns = 20, .utf8 = utf8};
    Row row(screen);
    add_bar(row, signal, 20, Style::Good);
    return row.text();
  };
  CHECK(bar(100, true) == "··············╎···┃·");
  CHECK(bar(50, true) == "██████████····╎···┃·");
  CHECK(bar(48, true) == "██████████▍···╎···┃·");
  CHECK(bar(20, true) == "██████████████╎█··┃·");
  CHECK(bar(0, true) == "██████████████╎███┃█");
  CHECK(bar(-5, true) == bar(0, true));
  CHECK(bar(50, false) == "##########....:...|.");
}

TEST_CASE("the time that is left is urgent when it is short, and a met threshold most of all") {
  auto state = busy_node();
  auto& memory = *state.status->mutable_signals(0);
  const auto drawn = [&] {
    return line_with(render(state, {.columns = 80, .rows = 24, .paint = Paint{true}}, now), "memory.available");
  };
  CHECK(drawn().find("\x1b[33m    12s") == std::string::npos);
  CHECK(drawn().find("\x1b[33m12s\x1b[0m") != std::string::npos);
  memory.set_fill_rate(100 << 20);
  CHECK(drawn().find("\x1b[1;31m1s\x1b[0m") != std::string::npos);
  memory.set_fill_rate(-1);
  CHECK(drawn().find("      -") != std::string::npos);
  memory.mutable_thresholds(1)->mutable_met_since()->set_seconds(1);
  CHECK(drawn().find("\x1b[33mmet\x1b[0m") != std::string::npos);
  memory.mutable_thresholds(0)->mutable_met_since()->set_seconds(1);
  CHECK(drawn().find("\x1b[1;31mmet\x1b[0m") != std::string::npos);
}

TEST_CASE("pressure, a missing runtime and an agent that went away are said at the top") {
  auto state = busy_node();
  const auto second = [&] { return render(state, {}, now)[1]; };
  CHECK(second() == " no pressure");
  state.status->mutable_conditions(0)->set_status(true);
  CHECK(second() == " MemoryPressure");
  state.status->mutable_runtime()->set_connected(false);
  CHECK(second() == " MemoryPressure  NO RUNTIME at unix:///run/c.sock");
  state.status->mutable_runtime()->set_connected(true);
  auto& going = *state.status->add_in_flight();
  going.mutable_pod()->set_namespace_("default");
  going.mutable_pod()->set_name("bloat");
  going.set_bytes(700 << 20);
  CHECK(second().find("evicting default/bloat (700Mi to come)") != std::string::npos);
  state.trouble = "no agent answers at /run/s (no such file): is evictd running?";
  state.trouble_since = now - 12s;
  CHECK(second().starts_with(" NO AGENT for 12s, trying again: no agent answers at /run/s"));
  CHECK(render(state, {.rows = 5}, now)[0].starts_with(" NO AGENT"));
  CHECK(render(TopState{}, {}, now)[1] == " asking the agent");
}

TEST_CASE("a name cannot move the cursor, and without UTF-8 nothing but ASCII is sent") {
  auto state = busy_node();
  state.ranking.mutable_pods(0)->mutable_pod()->set_name("\x1b[2Jb\xc3\xb6se\n");
  add_event(state, v1::Event::RECOVERED, "\x1b]0;title\x07 …");
  auto text = all(render(state, {}, now));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("default/\\x1b[2Jböse\\n") != std::string::npos);
  text = all(render(state, {.utf8 = false}, now));
  CHECK(std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  CHECK(text.find("default/\\x1b[2Jb?se\\n") != std::string::npos);
  CHECK(text.find("###") != std::string::npos);
}

TEST_CASE("keys choose the signal, round and round, and show the help") {
  auto state = busy_node();
  press(state, Key::Down);
  CHECK(state.signal == "nodefs.available");
  CHECK(line_with(render(state, {}, now), "▶").find("nodefs.available") != std::string::npos);
  CHECK(!line_with(render(state, {}, now), "WHO GOES FIRST for nodefs.available").empty());
  CHECK(!line_with(render(state, {}, now), "asking").empty());  // the ranking is still that of memory
  press(state, Key::Up);
  press(state, Key::Up);
  CHECK(state.signal == "pid.available");
  press(state, Key::Down);
  CHECK(state.signal == "memory.available");
  press(state, Key::Help);
  CHECK(!line_with(render(state, {}, now), "Ctrl-Z").empty());
  press(state, Key::Help);
  CHECK(line_with(render(state, {}, now), "Ctrl-Z").empty());
  state.signal = "gone.available";
  press(state, Key::Down);
  CHECK(state.signal == "memory.available");
  state.status.reset();
  press(state, Key::Down);
}

TEST_CASE("where there is no room for all signals those without thresholds go, and the chosen one stays") {
  auto state = busy_node();
  const auto lines = render(state, {.rows = 10}, now);
  CHECK(!line_with(lines, "pid.available").empty());
  CHECK(line_with(lines, "imagefs.inodesFree").empty());
  state.signal = "pid.available";
  CHECK(!line_with(render(state, {.rows = 5}, now), "▶pid.available").empty());
}

TEST_CASE("why there is no ranking is said in its place, and that nobody is left") {
  auto state = busy_node();
  state.ranking_error = "the runtime has not told its pods yet: is it running?";
  CHECK(!line_with(render(state, {}, now), "the runtime has not told its pods yet").empty());
  state.ranking_error.clear();
  state.ranking.clear_pods();
  CHECK(!line_with(render(state, {}, now), "nobody").empty());
}

TEST_CASE("why no events come is said in their place") {
  auto state = busy_node();
  state.events.clear();
  CHECK(!line_with(render(state, {}, now), "nothing yet").empty());
  state.events_error = "1 subscribers already: no more are served";
  CHECK(!line_with(render(state, {}, now), "no more are served").empty());
  CHECK(line_with(render(state, {}, now), "nothing yet").empty());
}

}  // namespace
}  // namespace evictd::ctl::view_test
