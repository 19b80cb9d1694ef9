#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/commands.hpp"
#include "benchmarks/crowd.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "testbed/agent.hpp"
#include "testbed/channel.hpp"
#include "testbed/failure.hpp"
#include "testbed/rejected_pods.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"

namespace bench {

using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

struct StreamsOptions {
  int trials = 20;                 ///< evictions in each situation
  std::size_t subscribers = 1000;  ///< each on a connection of its own
  int rate = 10'000;               ///< events a second that are asked for
  std::string scheduler = "none";  ///< or "nice" or "roundRobin", as a unit can have it
};

constexpr std::size_t pods_of_streams = 10;
constexpr std::int64_t streams_threshold = 300 * mebi;
constexpr std::int64_t streams_free = 600 * mebi;
constexpr std::string_view streams_growth = "450Mi";  // of the free memory: beyond the threshold, and not to the limit
constexpr int evictions_at_once = 5;                  // before the next situation has its turn

/// Many subscribers to an agent's events, each on a connection of its own, who read as fast as they are served. They
/// leave with this object.
class Subscribers {
 public:
  /// Returns when all subscriptions stand.
  Subscribers(const testbed::Agent& agent, std::size_t count) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    // A few at a time: the bench is about events, not about who comes first.
    constexpr std::size_t at_once = 50;
    for (std::size_t first = 0; first < count; first += at_once) {
      const auto last = std::min(first + at_once, count);
      for (auto i = first; i < last; ++i) streams_.push_back(std::make_unique<Stream>(*this, agent.address()));
      testbed::wait_until("the subscriptions stand", 2min, [&] {
        return std::all_of(streams_.begin() + static_cast<std::ptrdiff_t>(first), streams_.end(),
                           [](const auto& stream) { return stream->stands(); });
      });
    }
  }
  ~Subscribers() {
    leaving_ = true;
    for (const auto& stream : streams_) stream->cancel();
    streams_.clear();
  }
  Subscribers(const Subscribers&) = delete;

  /// Events that were read so far by all of them, and those that they were told they had missed.
  [[nodiscard]] std::uint64_t read() const { return read_; }
  [[nodiscard]] std::uint64_t missed() const { return missed_; }
  /// Streams that ended before their time.
  [[nodiscard]] std::size_t lost() const { return lost_; }

 private:
  class Stream final : public grpc::ClientReadReactor<Event> {
   public:
    Stream(Subscribers& all, const std::string& address) : all_{all}, stub_{testbed::agent_stub(address)} {
      context_.set_wait_for_ready(true);
      stub_->async()->StreamEvents(&context_, &request_, this);
      StartRead(&event_);
      StartCall();
    }
    ~Stream() override {
      cancel();
      done_.get_future().wait();
    }

    void cancel() { context_.TryCancel(); }
    [[nodiscard]] bool stands() const { return stands_; }

    void OnReadInitialMetadataDone(bool ok) override { stands_ = ok; }
    void OnReadDone(bool ok) override {
      if (!ok) return;
      if (event_.kind() == Event::GAP)
        all_.missed_ += event_.gap().to() - event_.gap().from() + 1;
      else
        ++all_.read_;
      StartRead(&event_);
    }
    void OnDone(const grpc::Status&) override {
      if (!all_.leaving_) ++all_.lost_;
      done_.set_value();
    }

   private:
    Subscribers& all_;
    std::unique_ptr<evictd::v1::EvictionService::Stub> stub_;
    grpc::ClientContext context_;
    evictd::v1::StreamEventsRequest request_;
    Event event_;
    std::atomic<bool> stands_ = false;
    std::promise<void> done_;
  };

  std::atomic<std::uint64_t> read_ = 0;
  std::atomic<std::uint64_t> missed_ = 0;
  std::atomic<std::size_t> lost_ = 0;
  std::atomic<bool> leaving_ = false;
  std::vector<std::unique_ptr<Stream>> streams_;  // last: until they are gone they count in the above
};

/// Makes events through the agent's API at a rate, from a thread of its own.
class EventLoad {
 public:
  /// `rate`: events a second, > 0. What the machine does not manage is not made up for.
  EventLoad(const testbed::Testbed& testbed, const testbed::Agent& agent, int rate) : pods_{testbed, agent} {
    pods_.make_events(1);
    thread_ = std::jthread([this, rate](const std::stop_token& stop) { run(stop, rate); });
  }

  [[nodiscard]] std::uint64_t made() const { return made_; }

 private:
  /// Small requests: one of 256 pods would itself hold up the agent for milliseconds.
  void run(const std::stop_token& stop, int rate) {
    constexpr int at_once = 20;
    const std::chrono::nanoseconds interval = std::chrono::nanoseconds(1s) * at_once / rate;
    auto next = std::chrono::steady_clock::now();
    while (!stop.stop_requested()) {
      std::this_thread::sleep_until(next);
      if (const auto status = pods_.reject(at_once, "default", "nobody"); !status.ok())
        return fmt::print(stderr, "bench: no more events: {}\n", status.error_message());
      made_ += at_once;
      next = std::max(next + interval, std::chrono::steady_clock::now() - 100ms);
    }
  }

  testbed::RejectedPods pods_;
  std::atomic<std::uint64_t> made_ = 0;
  std::jthread thread_;
};

/// From the wake-up on, as evictd says it, and from the crossing, as it is seen from outside.
Row evict_one(testbed::Testbed& testbed, Crowd& crowd, testbed::Agent& agent) {
  Crowd::Victim victim{crowd};
  victim.wait_until_known(agent);
  // The node's usage at which the threshold is met.
  const auto level = crowd.node_memory() - streams_threshold + testbed.node().memory_stat("inactive_file");
  Observer observer{testbed.node().memory_directory(), victim.cgroup()};
  const auto stages = stages_of(victim.grow(agent, streams_growth));
  observer.stop();
  victim.leave(agent);

  const auto course = course_of(observer.samples(), level);
  if (!course.crossing || !stages.killed || !stages.decided) testbed::fail("the victim did not cross the threshold");
  const auto since = [&](Nanoseconds begin, Nanoseconds end) { return std::vector{milliseconds(end - begin)}; };
  constexpr std::string_view two = "{median:.2f} / {p90:.2f}";
  return {{"decidedMs", "decided", since(*stages.woken, *stages.decided), two},
          {"killedMs", "killed", since(*stages.woken, *stages.killed), two},
          {"crossingToKillMs", "since crossing", since(*course.crossing, *stages.killed), two}};
}

/// An agent with subscribers and events as they are wanted, and what came of it in some evictions.
struct Situation {
  std::string name;
  bool has_events;
  std::size_t subscribers;
  double seconds = 0;
  double events = 0;
  double told = 0;    ///< to all subscribers together
  double missed = 0;  ///< likewise, as they were told
  Row times{};

  void evict(testbed::Testbed& testbed, Crowd& crowd, testbed::Agent& agent, const StreamsOptions& options, int count) {
    std::optional<Subscribers> readers;
    if (subscribers > 0) readers.emplace(agent, subscribers);
    std::optional<EventLoad> load;
    if (has_events) load.emplace(testbed, agent, options.rate);
    std::this_thread::sleep_for(1s);  // it is in its stride
    const auto begin = std::chrono::steady_clock::now();
    if (load) events -= static_cast<double>(load->made());
    if (readers) told -= static_cast<double>(readers->read());
    if (readers) missed -= static_cast<double>(readers->missed());
    for (int i = 0; i < count; ++i) {
      const auto eviction = evict_one(testbed, crowd, agent);
      add(times, eviction);
      progress(fmt::format("{}, ms: {}", name, line_of(eviction)));
    }
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (load) events += static_cast<double>(load->made());
    if (!readers) return;
    told += static_cast<double>(readers->read());
    missed += static_cast<double>(readers->missed());
    if (readers->lost() > 0) testbed::fail(fmt::format("{} subscribers were cut off", readers->lost()));
  }

  [[nodiscard]] Row figures() const {
    return joined({{"situation", "", name},
                   {"subscribers", "readers", subscribers},
                   {"eventsPerSecond", "events", events / seconds, "{:.0f}"},
                   {"toldPerSecond", "told", told / seconds, "{:.0f}"},
                   {"missedPerSecond", "missed", missed / seconds, "{:.0f}"}},
                  summarized(times));
  }
};

/// The times of a row beside those of another one.
Row ratios(const char* name, const Row& of, const Row& base) {
  Row row{{"", "", name}};
  for (std::size_t i = 1; i < of.size(); ++i) {
    const auto ratio = [&](const char* of_what) {
      return of[i].value.at(of_what).as_double() / base[i].value.at(of_what).as_double();
    };
    row.emplace_back("", "",
                     of[i].value.is_object() ? fmt::format("{:.2f} / {:.2f}", ratio("median"), ratio("p90")) : "");
  }
  return row;
}

/// What runs evictd as the unit does with CPUSchedulingResetOnFork=yes and Nice=-10 or CPUSchedulingPolicy=rr: for the
/// deciding thread alone.
std::vector<std::string> scheduled(const std::string& scheduler) {
  if (scheduler == "nice") return {"chrt", "--reset-on-fork", "--other", "0", "nice", "-n", "-10"};
  if (scheduler == "roundRobin") return {"chrt", "--reset-on-fork", "--rr", "1"};
  return {};
}

/// A quiet log and nobody who reads it, then events, then events and subscribers, all in turn and a few evictions at a
/// time.
Report measure_streams(const StreamsOptions& options) {
  testbed::Testbed testbed{{.start_containerd = false}};
  Crowd crowd{testbed, pods_of_streams};
  crowd.leave_free(streams_free);
  auto agent_options = bench::agent_options(
      Variant::fast, fmt::format("evictionHard: {{memory.available: {}Mi}}", streams_threshold / mebi));
  // A history of two seconds, or as much as evictd takes: who waits for the end of the eviction must not miss it.
  agent_options.sections +=
      fmt::format("api: {{subscribers: {}, historyLimit: {}, subscriberQueue: {}}}\n", options.subscribers + 16,
                  std::min(2 * options.rate, 1'000'000), std::min(2 * options.rate, 65'536));
  agent_options.kinds = {Event::CLEANUP_DONE};
  agent_options.keep_history = true;
  // A line for each event is another matter.
  agent_options.sections += "log: {level: warn}\n";
  agent_options.wrapper = scheduled(options.scheduler);
  testbed::Agent agent{testbed, agent_options};
  agent.wait_for_pods(pods_of_streams);
  std::array situations{Situation{"quiet, nobody reads", false, 0}, Situation{"events, nobody reads", true, 0},
                        Situation{"events and subscribers", true, options.subscribers}};
  for (int done = 0; done < options.trials; done += evictions_at_once)
    for (auto& situation : situations)
      situation.evict(testbed, crowd, agent, options, std::min(evictions_at_once, options.trials - done));
  std::vector<Row> rows;
  for (const auto& situation : situations) rows.push_back(situation.figures());
  auto results = results_of("streams", rows, {{"trials", options.trials}});
  rows.push_back(ratios("the second of them to quiet", rows[1], rows[0]));
  rows.push_back(ratios("the third of them to quiet", rows[2], rows[0]));
  return {.json = std::move(results),
          .text = fmt::format("{} evictions in each situation, {} pods. A second: events, told and missed by all "
                              "subscribers together.\nMilliseconds, median / p90: from the wake-up to the decision and "
                              "to the kill, and from the crossing of the\nthreshold to the kill.\n\n{}",
                              options.trials, pods_of_streams, table_of(rows))};
}

}  // namespace

void add_streams(Commands& commands) {
  commands.add({"streams", "whether many subscribers and events make an eviction later", "evictions in each situation"},
               measure_streams, [](auto& command, auto& options) {
                 number(command, "--subscribers", options.subscribers, "each with a connection of its own", 1, 20'000);
                 number(command, "--rate", options.rate, "events a second", 20, 1'000'000);
                 command.add_option("--scheduler", options.scheduler, "how the deciding thread is scheduled")
                     ->check(CLI::IsMember({"none", "nice", "roundRobin"}))
                     ->capture_default_str();
               });
}

}  // namespace bench
