#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/commands.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/soak/diary.hpp"
#include "benchmarks/soak/dice.hpp"
#include "benchmarks/soak/findings.hpp"
#include "benchmarks/soak/hogs.hpp"
#include "benchmarks/soak/leftovers.hpp"
#include "benchmarks/soak/pods.hpp"
#include "benchmarks/soak/readers.hpp"
#include "benchmarks/soak/report.hpp"
#include "benchmarks/soak/samples.hpp"
#include "core/duration.hpp"
#include "testbed/agent.hpp"
#include "testbed/failure.hpp"
#include "testbed/wait.hpp"

namespace bench::soak {

namespace json = boost::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

struct Options {
  std::chrono::milliseconds duration = std::chrono::hours{1};
  std::uint64_t seed = 1;  ///< of every random choice
  int pods = 30;           ///< that stand on the node, give or take a fifth
  int subscribers = 100;
};

// Two hogs that nobody evicts fit in: it is evictd that has to answer, not the kernel.
constexpr std::int64_t node_memory = 1536 * mebi;
constexpr std::int64_t threshold = 1024 * mebi;

testbed::Agent::Options agent_options(const Options& options) {
  return {.thresholds = fmt::format("evictionHard: {{memory.available: {}Mi}}", threshold / mebi),
          // A source's self-test belongs to what must not wear out, too.
          .notifier = "selfTestInterval: 20s",
          .keep_history = true,
          // The machine's delays are not to be seen as those of evictd: a queue of some seconds.
          .sections = fmt::format("log: {{level: warn}}\napi: {{subscribers: {}, subscriberQueue: 2048}}\n",
                                  4 * options.subscribers + 16),
          .kinds = {evictd::v1::Event::CONFIG_CHANGED}};
}

/// Everything that takes part.
class Soak {
 public:
  Soak(const Options& options, const std::stop_token& asked)
      : options_{options},
        asked_{asked},
        forward_{asked, [this] { end_.request_stop(); }},
        testbed_{{.node = {.memory_limit = node_memory}}},
        keeper_{testbed_, findings_},
        population_{keeper_, options.seed, options.pods},
        crossings_{testbed_.node(), node_memory - threshold} {}

  json::object run() {
    progress(fmt::format("seed {}: starting {} pods", options_.seed, options_.pods));
    population_.fill();
    agent_.emplace(testbed_, agent_options(options_));
    chronicle_.emplace(*agent_, ledger_, findings_);
    hogs_.emplace(Hogs::Parts{testbed_, *agent_, keeper_, crossings_, chronicle_->evictions(), findings_},
                  options_.seed);
    restarts_.emplace(testbed_, findings_, options_.seed);
    chatter_.emplace(testbed_, *agent_, findings_, options_.seed);
    rehearse();
    settled_before_ = settle("before", std::numeric_limits<int>::max());
    act();
    try {
      settled_after_ = settle("after", settled_before_.files);
      take_down();
    } catch (const testbed::Failure& failure) {
      findings_.add(failure.what());  // the figures so far are told all the same
    }
    return judge();
  }

 private:
  /// Everything once: what evictd makes at its first use is no growth later.
  void rehearse() {
    chatter_->fill_history([this] {
      testbed::wait_until("who reads all has read all", 1min,
                          [this] { return chronicle_->last() >= agent_->status().last_event_sequence(); });
    });
    {
      const Visitors visitors{*agent_, ledger_, findings_, ~options_.seed, options_.subscribers};
      restarts_->once(true, 0s);
      hogs_->cross(2);
      pause(end_.get_token(), 5s);
    }
    agent_->wait_for_pods(static_cast<std::size_t>(options_.pods));
  }
  void act() {
    const auto begin = Clock::now();
    const Visitors visitors{*agent_, ledger_, findings_, options_.seed, options_.subscribers};
    std::vector<std::jthread> acting;
    acting.push_back(start("chatter", [&](const auto& stop) { chatter_->run(stop); }));
    acting.push_back(start("pods", [&](const auto& stop) { population_.change(stop); }));
    acting.push_back(start("hogs", [&](const auto& stop) { hogs_->run(stop); }));
    acting.push_back(start("containerd", [&](const auto& stop) { restarts_->run(stop); }));
    acting.push_back(start("crossings", [&](const auto& stop) { crossings_.watch(stop); }));
    look_at(begin);
    end_.request_stop();
    progress("the end: whoever acts finishes");
  }
  void look_at(Clock::time_point begin) {
    const auto interval = std::clamp<std::chrono::milliseconds>(options_.duration / 120, 500ms, 10s);
    const auto minutes = [&] { return std::chrono::duration<double, std::ratio<60>>(Clock::now() - begin).count(); };
    double next_word = 1;
    do {
      if (!agent_->process().running()) {
        findings_.add("evictd ended: " + agent_->process().errors());
        break;
      }
      samples_.push_back(sample(minutes()));
      if (minutes() < next_word) continue;
      say_how_it_goes(minutes());
      next_word += 1;
    } while (Clock::now() - begin < options_.duration && pause(end_.get_token(), interval));
    minutes_ = minutes();
    interrupted_ = asked_.stop_requested() && Clock::now() - begin < options_.duration;
  }
  void say_how_it_goes(double minutes) const {
    const auto& last = samples_.back();
    progress(
        fmt::format("{:.0f} min: {} pods started, {} evictions, event {}, {:.1f} MiB, {} descriptors, {} threads{}",
                    minutes, findings_.figures().at("pods").at("started").as_int64(),
                    chronicle_->evictions().all().size(), chronicle_->last(), last.resident_mib, last.files,
                    last.threads, findings_.count() == 0 ? "" : fmt::format(", {} VIOLATIONS", findings_.count())));
  }
  /// Nobody but the chronicle reads, nothing is under way, the pods are as many as ever, with as many containers: of
  /// each container evictd holds files open.
  [[nodiscard]] Sample settle(const char* when, int most_files) {
    population_.replace_all();
    const auto pods = static_cast<std::size_t>(options_.pods);
    if (!testbed::comes_true(2min, [&] {
          const auto status = agent_->status();
          return status.pods() == pods && status.in_flight().empty() && status.runtime().connected();
        }))
      findings_.add(fmt::format("evictd does not settle {}: {}", when, agent_->status().ShortDebugString()));
    // Files of pods that have just come are opened one after the other: what two looks in turn agree upon has settled.
    auto quietest = quietest_in(testbed::patient(3s));
    const auto end = Clock::now() + testbed::patient(30s);
    for (bool agree = false; (!agree || quietest.files > most_files) && Clock::now() < end;) {
      const auto next = quietest_in(1s);
      agree = next.files == quietest.files;
      quietest = next;
    }
    const auto of_evictd = descriptors_of(agent_->process().pid());
    const auto our_own = descriptors_of(::getpid());
    if (quietest.files > most_files)
      findings_.add(fmt::format("descriptors: {} when all had settled before, {} after: {} (the bench itself: {})",
                                most_files, quietest.files, difference(descriptors_, of_evictd),
                                difference(own_descriptors_, our_own)));
    descriptors_ = of_evictd;
    own_descriptors_ = our_own;
    return quietest;
  }
  /// A file that is read, or a source that tests itself, has a descriptor for a moment.
  [[nodiscard]] Sample quietest_in(std::chrono::milliseconds time) {
    const auto end = Clock::now() + time;
    auto quietest = sample_without_us();
    while (Clock::now() < end) {
      pause({}, 20ms);
      if (const auto now = sample_without_us(); now.files < quietest.files) quietest = now;
    }
    return quietest;
  }
  void take_down() {
    const auto status = agent_->status();
    if (!testbed::comes_true(10s, [&] { return chronicle_->last() >= status.last_event_sequence(); }))
      findings_.add(
          fmt::format("event {} was not told: {} is the last one", status.last_event_sequence(), chronicle_->last()));
    population_.remove_all();
    if (!testbed::comes_true(1min, [&] { return agent_->status().pods() == 0; }))
      findings_.add(fmt::format("evictd knows {} pods, and there are none", agent_->status().pods()));
    look_for_leftovers(testbed_, findings_);
  }
  [[nodiscard]] json::object judge() {
    const auto evictions = chronicle_->evictions().all();
    std::vector<double> kills;
    for (const auto& eviction : evictions)
      if (eviction.kill_ms) kills.push_back(*eviction.kill_ms);
    auto figures = findings_.figures();
    auto& crossings = figures["crossings"].as_object();
    crossings["growthToDeathMs"] = json::value_from(summarize(hogs_->dead_ms()));
    crossings["seenFromOutside"] = crossings_.count();
    crossings["longestMs"] = crossings_.longest_ms();
    crossings["wakeUpToKillMs"] = json::value_from(summarize(kills));
    figures["events"].as_object()["last"] = chronicle_->last();
    // An hour's first five minutes, and of less time at most the first one.
    const auto warm_up = std::max(minutes_ / 12, std::min(1.0, minutes_ / 5));
    figures["bench"] = "soak";
    figures["seed"] = options_.seed;
    figures["minutes"] = minutes_;
    figures["interrupted"] = interrupted_;
    figures["evictions"] = judge_evictions(evictions, findings_);
    figures["degraded"] = json::value_from(chronicle_->evictions().degraded());
    figures["warmUpMinutes"] = warm_up;
    for (const auto& [what, trend] : judge_growth(samples_, warm_up, findings_)) figures[what] = trend;
    figures["settledBefore"] = json::value_from(settled_before_);
    figures["settledAfter"] = json::value_from(settled_after_);

    chronicle_.reset();
    agent_->process().signal(SIGTERM);
    if (const auto code = agent_->process().wait(30s); code != 0)
      findings_.add(fmt::format("evictd, asked to end, ended with {}", code ? std::to_string(*code) : "nothing"));
    look_for_cgroups_of_evictd(testbed_, findings_);
    figures["violations"] = findings_.count();
    figures["violated"] = json::value_from(findings_.lines());
    figures["samples"] = json::value_from(samples_);
    return figures;
  }
  [[nodiscard]] Sample sample(double minutes) { return sample_of(agent_->process().pid(), minutes); }
  /// Without evictd's ends of the connections that this process holds: gRPC 1.51 keeps one of a visitor open now and
  /// then, for minutes after its channel has gone.
  [[nodiscard]] Sample sample_without_us() {
    auto sampled = sample(0);
    sampled.files -= descriptors_of(::getpid())["socket"];
    return sampled;
  }
  /// From a thread of its own until the end; what it throws is a finding, and the end.
  [[nodiscard]] std::jthread start(const char* who, std::function<void(const std::stop_token&)> work) {
    return std::jthread{[this, who, work = std::move(work)](const std::stop_token& own) {
      // Where act() is left by an exception, nobody else says that it is over.
      const std::stop_callback forward{own, [this] { end_.request_stop(); }};
      try {
        work(end_.get_token());
      } catch (const std::exception& error) {
        findings_.add(fmt::format("the bench itself ({}): {}", who, error.what()));
        end_.request_stop();
      }
    }};
  }

  Options options_;
  std::stop_token asked_;  // by the user
  std::stop_source end_;
  std::stop_callback<std::function<void()>> forward_;
  Findings findings_;
  Ledger ledger_;
  std::map<std::string, int> descriptors_;      // of evictd, when all had settled
  std::map<std::string, int> own_descriptors_;  // of the bench, which has the other end of each connection
  double minutes_ = 0;                          // less than was asked for where it ended early
  bool interrupted_ = false;                    // by the user
  std::vector<Sample> samples_;
  // With the same pods and nobody who reads, before all began and after it was over; without the bench's connections.
  Sample settled_before_;
  Sample settled_after_;

  testbed::Testbed testbed_;
  Keeper keeper_;
  Population population_;
  Crossings crossings_;
  std::optional<testbed::Agent> agent_;
  std::optional<Chronicle> chronicle_;
  std::optional<Hogs> hogs_;
  std::optional<Restarts> restarts_;
  std::optional<Chatter> chatter_;
};

/// Runs evictd on a real containerd for so long, with pods that come and go, hogs, a containerd that is killed and
/// subscribers that come and go, and looks at what has to hold. Ends early when it is asked to.
Report run(const Options& options, const std::stop_token& asked) {
  const auto figures = Soak{options, asked}.run();
  return {.json = figures,
          .text = text_of(figures, options.pods, options.subscribers),
          .exit_code = figures.at("violations") == 0 ? 0 : 1};
}

}  // namespace

}  // namespace bench::soak

namespace bench {

void add_soak(Commands& commands) {
  commands.add(
      {"soak", "whether it lasts: hogs, pods, containerds and subscribers come and go"}, soak::run,
      [](auto& command, auto& options) {
        options.seed = std::random_device{}();
        command
            .template add_option_function<std::string>(
                "--duration",
                [&options](const std::string& text) {
                  const auto duration = evictd::core::parse_duration(text);
                  if (!duration || *duration < std::chrono::seconds{1})
                    throw CLI::ValidationError("--duration", "\"" + text + "\" is no duration of a second or more");
                  options.duration = std::chrono::duration_cast<std::chrono::milliseconds>(*duration);
                },
                "5m, 1h30m; Ctrl-C ends it before, with the figures so far")
            ->default_str("1h");
        command.add_option("--seed", options.seed, "of all that is random; none: a new one, which is told");
        number(command, "--pods", options.pods, "that stand on the node", 5, 100);
        number(command, "--subscribers", options.subscribers, "that come and go", 1, 500);
      },
      supervised_until_asked);
}

}  // namespace bench
