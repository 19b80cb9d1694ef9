#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/commands.hpp"
#include "benchmarks/floor.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "core/pod.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/fake_hook.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace json = boost::json;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

struct LatencyOptions {
  int trials = 20;  ///< of each variant
  std::vector<std::string> variants{"fast", "cri", "floor"};
  std::string plot{};  ///< an SVG file, empty: none: a strip for each variant with every trial's stages along a
                       ///< logarithmic axis of time
};

/// The stages of an eviction, each counted from the moment at which the observer first saw the node beyond the
/// threshold, in milliseconds; and last how far the node's usage went beyond it. "killed" with CRI is the runtime's
/// answer, which comes after the kill; "growth over" is the same for all.
constexpr std::array<std::string_view, 8> latency_figures{"woken",         "decided",  "killed",  "growth over",
                                                          "first release", "released", "cleanup", "overshoot MiB"};
constexpr std::size_t latency_stages = latency_figures.size() - 1;

constexpr std::int64_t latency_threshold = 300 * mebi;
// Below the threshold by some 75 MiB, and then as far beyond it as leaves the node 75 MiB: the kernel has no reason to
// kill, however late we are.
constexpr std::string_view near_it = "600Mi";
constexpr std::string_view beyond_it = "900Mi";

/// A crossing that is answered at once may lie between two looks of the observer: the kernel charges a processor
/// 256 KiB at a time, and takes back what was not used as the process ends. Then it is known from who has answered.
/// Of each figure a list of one, or of none.
Row trial_of(const Course& course, const Stages& stages, std::int64_t level) {
  const auto crossing = course.crossing ? course.crossing : stages.woken;
  if (!crossing) testbed::fail("the victim did not cross the threshold");
  const auto since = [&](std::optional<Nanoseconds> time) {
    return time ? std::vector{milliseconds(*time - *crossing)} : std::vector<double>{};
  };
  const std::array values{
      since(stages.woken),         since(stages.decided),
      since(stages.killed),        since(course.growth_over),
      since(course.first_release), since(course.released),
      since(stages.cleanup),       std::vector{static_cast<double>(course.peak_of_node - level) / mebi}};
  Row row;
  for (std::size_t i = 0; i < values.size(); ++i) row.emplace_back("", latency_figures[i], values[i], "{median:.2f}");
  return row;
}

/// Lets the victim grow, with the observer looking, until `act` says what the one who acted did.
template <class Act>
Row grow(Scene& scene, const OwnPod& victim, std::int64_t level, Act act) {
  std::this_thread::sleep_for(500ms);  // what the pod's start stirred up is over
  Observer observer{scene.testbed().node().memory_directory(), victim.cgroup()};
  const auto held = observer.pod_usage();
  victim.tell(beyond_it);
  const Stages stages = act();
  testbed::wait_until("the victim's memory is back", 60s, [&] { return observer.pod_usage() <= held / 20; });
  std::this_thread::sleep_for(5ms);  // for the observer's last sample
  observer.stop();
  return trial_of(course_of(observer.samples(), level), stages, level);
}

Row by_floor(Scene& scene, const OwnPod& victim) {
  const auto level = scene.level();
  const Floor floor{scene.testbed().node().memory_directory(), victim.cgroup(), level};
  return grow(scene, victim, level, [&] {
    testbed::wait_until("the floor has killed", 60s, [&] { return floor.done(); });
    return floor.stages();
  });
}

/// The one that is asked before the kill. Nothing where the variant has none.
std::unique_ptr<testbed::FakeHook> add_hook(Scene& scene, Variant variant, testbed::Agent::Options& options) {
  const bool hangs = variant == Variant::hook_hangs;
  if (!hangs && variant != Variant::hook) return nullptr;
  const auto directory = scene.testbed().directory() / "hooks";
  std::filesystem::create_directory(directory);
  const auto path = directory / "hook";
  std::filesystem::remove(path);  // of an earlier trial
  options.eviction = fmt::format("hooks: {{time: 100ms, directory: {}}}", directory.native());
  return std::make_unique<testbed::FakeHook>(path, hangs ? testbed::hook_does::hang : testbed::hook_does::done);
}

Row by_evictd(Scene& scene, const OwnPod& victim, Variant variant) {
  auto options = agent_options(variant, scene.thresholds());
  options.runtime_directory = scene.runtime_directory();
  const auto hook = add_hook(scene, variant, options);
  testbed::Agent agent{scene.testbed(), options};
  agent.wait_for_pods(scene.calm_pods() + 1);
  auto trial = grow(scene, victim, scene.level(),
                    [&] { return stages_of(agent.events().wait_for(Event::CLEANUP_DONE, victim.key(), 60s)); });
  if (!scene.calm_pods_run()) testbed::fail("a calm pod was evicted, too");
  return trial;
}

Row run_trial(Scene& scene, Variant variant, int number) {
  scene.wait_until_calm();
  const OwnPod victim{scene.testbed(),
                      {.name = fmt::format("victim-{}", number),
                       .qos = evictd::core::QosClass::BestEffort,
                       .containers = {{.args = {"follow", OwnPod::word}}}},
                      near_it};
  testbed::wait_until("the victim holds its memory", 60s,
                      [&] { return scene.testbed().node().memory_usage(victim.pod().cgroup) >= 600 * mebi; });
  return variant == Variant::floor ? by_floor(scene, victim) : by_evictd(scene, victim, variant);
}

/// One figure of all trials of a variant. Before the figures stand the variant's name and the number of its runs.
std::vector<double> values_of(const Row& row, std::size_t figure) {
  return json::value_to<std::vector<double>>(row.at(figure + 2).value);
}
std::string_view name_of(const Row& row) { return row.front().value.as_string(); }

// In pixels.
constexpr double left = 110;
constexpr double right = 40;
constexpr double axis_width = 800;
constexpr double top = 70;
constexpr double row = 16;  ///< of one stage
constexpr double strip = row * latency_stages + 24;
// Milliseconds: what lies outside is drawn at the edge.
constexpr double first = 0.01;
constexpr double last = 1000;

constexpr std::array<std::string_view, latency_stages> colours{"#6b7280", "#2563eb", "#dc2626", "#d97706",
                                                               "#059669", "#0d9488", "#7c3aed"};

double x_of(double milliseconds) {
  const double within = std::clamp(milliseconds, first, last);
  return left + axis_width * std::log10(within / first) / std::log10(last / first);
}

std::string text(double x, double y, std::string_view anchor, std::string_view style, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, style, words);
}

std::string axis(double bottom) {
  std::string svg;
  const auto decades = std::lround(std::log10(last / first));
  for (long decade = 0; decade <= decades; ++decade) {
    const double tick = first * std::pow(10, decade);
    svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#e5e7eb\"/>\n", x_of(tick),
                       top - 6, bottom);
    svg += text(x_of(tick), bottom + 18, "middle", "fill=\"#4b5563\"", fmt::format("{:g} ms", tick));
  }
  return svg;
}

/// A row of a strip: every trial a dot, the median a bar with its number.
std::string stage_row(const Row& of, std::size_t stage, double y) {
  std::string svg;
  const auto values = values_of(of, stage);
  for (const auto value : values)
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\" fill-opacity=\"0.45\"/>\n",
                       x_of(value), y, colours[stage]);
  const auto [median, p90, greatest] = summarize(values);
  svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"3\" height=\"{}\" fill=\"{}\"/>\n", x_of(median) - 1.5,
                     y - row / 2 + 1, row - 2, colours[stage]);
  // Beside the furthest dot, so that it lies on none.
  const double furthest = std::max(x_of(greatest), x_of(median));
  svg += text(furthest + 7, y + 3.5, "start", fmt::format("font-size=\"10\" fill=\"{}\"", colours[stage]),
              fmt::format("{} {:.2f}", latency_figures[stage], median));
  return svg;
}

/// A strip for each variant with every trial's stages along a logarithmic axis of time.
std::string latency_svg(const std::vector<Row>& variants) {
  const double bottom = top + strip * static_cast<double>(variants.size());
  const double width = left + axis_width + right + 60;
  auto svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, bottom + 40);
  svg += text(left, 26, "start", "font-size=\"16\" fill=\"#111827\"", "From crossing the threshold to free memory");
  svg += text(left, 46, "start", "fill=\"#4b5563\"",
              "milliseconds since the crossing; a dot is a trial, a bar with its number the median");
  svg += axis(bottom);
  double y = top;
  for (const auto& variant : variants) {
    svg += fmt::format("<line x1=\"20\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\" stroke=\"#9ca3af\"/>\n", y - 6, width - 20);
    svg += text(20, y + strip / 2 - 6, "start", "font-weight=\"bold\" fill=\"#111827\"", name_of(variant));
    for (std::size_t stage = 0; stage < latency_stages; ++stage)
      svg += stage_row(variant, stage, y + row * (static_cast<double>(stage) + 0.5) + 4);
    y += strip;
  }
  return svg + "</svg>\n";
}

/// How many times as much as the floor: nothing where the floor's is too small to tell, or comes before the crossing.
void add_ratio(Row& row, std::string_view key, std::string_view heading, double value, double floor) {
  constexpr double least = 0.05;  // what the observer can tell, ms; and a few pages, MiB
  if (floor < least)
    row.emplace_back("", heading, "-");
  else
    row.emplace_back(key, heading, value / floor, value / floor < 100 ? "{:.2f}" : "{:.0f}");
}

/// `floor`: all zero where there is none to compare with.
Row figures(std::string_view variant, std::string_view figure, const Summary& of, const Summary& floor) {
  Row row{{"", "", variant},
          {"", "", figure},
          {"median", "median", of.median, "{:.2f}"},
          {"p90", "p90", of.p90, "{:.2f}"},
          {"max", "max", of.max, "{:.2f}"}};
  add_ratio(row, "ratioOfMedians", "x median", of.median, floor.median);
  add_ratio(row, "ratioOfP90s", "x p90", of.p90, floor.p90);
  return row;
}

json::object as_json(Variant variant, const Row& trial) {
  json::object times;
  for (std::size_t stage = 0; stage < latency_stages; ++stage) {
    const auto& list = trial[stage].value.as_array();
    times[latency_figures[stage]] = list.empty() ? json::value(nullptr) : list[0];
  }
  return {{"variant", name(variant)},
          {"milliseconds", std::move(times)},
          {"overshootMiB", trial.back().value.as_array().at(0)}};
}

Report report_trials(const std::vector<Row>& rows, json::array each, int rounds) {
  std::vector<Row> table;
  json::object variants;
  const auto floor = std::ranges::find(rows, name(Variant::floor), name_of);
  for (auto row = rows.begin(); row != rows.end(); ++row) {
    const auto add_figure = [&](std::size_t figure) {
      const auto compared = row == floor || floor == rows.end() ? Summary{} : summarize(values_of(*floor, figure));
      table.push_back(figures(name_of(*row), latency_figures[figure], summarize(values_of(*row, figure)), compared));
      return json_of(table.back());
    };
    json::object stages;
    for (std::size_t stage = 0; stage < latency_stages; ++stage) stages[latency_figures[stage]] = add_figure(stage);
    variants[name_of(*row)] =
        json::object{{"milliseconds", std::move(stages)}, {"overshootMiB", add_figure(latency_stages)}};
    table.emplace_back();
  }
  return {.json = {{"bench", "latency"}, {"variants", std::move(variants)}, {"trials", std::move(each)}},
          .text = fmt::format(
              "Milliseconds since the node's usage crossed the threshold, {} trials each; x: times the floor's.\n\n{}",
              rounds, table_of(table))};
}

Report measure_latency(const LatencyOptions& options) {
  const auto variants = variants_named(options.variants);
  std::ofstream plot;
  if (!options.plot.empty()) plot.open(options.plot);
  if (plot.fail()) testbed::fail(options.plot + " cannot be written to");
  Scene scene{latency_threshold};
  json::array each;
  std::vector<Contender> contenders;
  for (const auto variant : variants)
    contenders.push_back({.who = {{"", "", name(variant)}}, .run = [&, variant](int number) {
                            auto trial = run_trial(scene, variant, number);
                            each.push_back(as_json(variant, trial));
                            return trial;
                          }});
  const auto rows = in_turn(options.trials, contenders);
  auto report = report_trials(rows, std::move(each), options.trials);
  if (!plot.is_open() || plot << latency_svg(rows) << std::flush) return report;
  progress("bench: " + options.plot + " cannot be written to");  // and the figures are told all the same
  report.exit_code = 1;
  return report;
}

}  // namespace

void add_latency(Commands& commands) {
  commands.add(
      {"latency", "from crossing a memory threshold to free memory, beside a bare kill loop", "of each variant"},
      measure_latency, [](auto& command, auto& options) {
        command.add_option("--plot", options.plot, "an SVG file to draw the trials into");
        variants(command, options.variants,
                 {"fast", "cri", "timer", "sampler", "fence", "hook", "hook-hangs", "floor"});
      });
}

}  // namespace bench
