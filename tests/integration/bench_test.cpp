#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <sstream>

#include "benchmarks/cluster.hpp"
#include "benchmarks/observer.hpp"
#include "benchmarks/path.hpp"
#include "benchmarks/report.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"
#include "things.hpp"

namespace integration::bench_test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t mebi = 1 << 20;

}  // namespace

TEST_CASE("the bench of latencies has a row for every variant and stage, and draws them") {
  const auto plot = fs::temp_directory_path() / fmt::format("evictd-bench-{}.svg", ::getpid());
  testbed::Process bench({testbed::bench_program(), "latency", "--trials", "1", "--plot", plot});
  CHECK(bench.wait(2min) == 0);
  const auto table = bench.output();
  CAPTURE(table);
  CAPTURE(bench.errors());
  const auto rows_of = [&](std::string_view variant) {
    int rows = 0;
    std::istringstream lines{table};
    for (std::string line; std::getline(lines, line);) rows += line.starts_with(variant) ? 1 : 0;
    return rows;
  };
  CHECK(rows_of("evictd fast ") == 8);
  CHECK(rows_of("evictd cri ") == 8);
  CHECK(rows_of("floor ") == 8);
  CHECK(testbed::read_file(plot).ends_with("</svg>\n"));
  fs::remove(plot);
}

TEST_CASE("the bench of the path counts calls by stage, from the one that told of the shortage to the first signal") {
  using Time = std::chrono::steady_clock::time_point;
  const auto call = [](std::uint64_t number, int begin, std::uint64_t instructions) {
    return testbed::TracedCall{.number = number,
                               .begin = Time{std::chrono::microseconds{begin}},
                               .end = Time{std::chrono::microseconds{begin + 1}},
                               .instructions = instructions};
  };
  const std::vector calls{call(SYS_read, 5, 1),           call(SYS_read, 10, 100),
                          call(SYS_pread64, 20, 150),     call(SYS_pread64, 30, 160),
                          call(SYS_pread64, 50, 1160),    call(SYS_openat, 70, 1200),
                          call(SYS_pidfd_open, 80, 1210), call(SYS_pidfd_send_signal, 90, 1215),
                          call(SYS_getdents64, 95, 1220)};
  bench::PathTimes times{.woken = Time{15us}};
  times.ends = {Time{35us}, Time{60us}, Time{65us}};
  const auto path = bench::path_of(calls, times);
  REQUIRE(path);
  CHECK((*path)[0].calls == 3);
  CHECK((*path)[1].calls == 1);
  CHECK((*path)[2].calls == 0);
  CHECK((*path)[3].calls == 3);
  CHECK((*path)[3].opened == 1);
  CHECK((*path)[3].listed == 0);
  CHECK((*path)[0].instructions == 60);
  CHECK((*path)[1].instructions == 1000);
  CHECK((*path)[1].longest_gap == 19us);
  CHECK_FALSE(bench::path_of(std::span{calls}.first(7), times));
}

TEST_CASE("the bench of the path has a row for each stage, and tells of no directory that was listed") {
  testbed::Process bench({testbed::bench_program(), "path", "--trials", "1", "--pods", "5", "-o", "json"});
  CHECK(bench.wait(2min) == 0);
  CAPTURE(bench.errors());
  const auto results = boost::json::parse(bench.output()).at("results").as_array();
  REQUIRE(results.size() == 1);
  CHECK(results[0].at("stages").as_object().size() == 4);
  CHECK(results[0].at("all").at("calls").at("median").to_number<double>() > 0);
  CHECK(results[0].at("all").at("listed").at("max").to_number<double>() == 0);
}

TEST_CASE("the benches of brake, trim and steering each have a row with it and one without") {
  const std::vector<std::vector<std::string>> benches{{"brake"}, {"trim"}, {"oom", "--steer"}};
  std::vector<std::unique_ptr<testbed::Process>> running;  // side by side: each has a node of its own
  for (auto command : benches) {
    command.insert(command.begin(), testbed::bench_program());
    command.insert(command.end(), {"--trials", "1", "-o", "json"});
    running.push_back(std::make_unique<testbed::Process>(command));
  }
  for (auto& bench : running) {
    CHECK(bench->wait(5min) == 0);
    CAPTURE(bench->errors());
    const auto results = boost::json::parse(bench->output()).at("results").as_array();
    REQUIRE(results.size() == 2);
    for (const auto& row : results) CHECK(row.at("runs") == 1);
  }
  // What comes out of it for sure.
  const auto row_without = [&](std::size_t bench) {
    return boost::json::parse(running[bench]->output()).at("results").as_array()[1];
  };
  CHECK(row_without(0).at("inOrder") == 0);
  CHECK(row_without(1).at("evictions") == 1);
}

TEST_CASE("the bench of the proxy has a row for every kind of call, each of which took some time both ways") {
  testbed::Process bench({testbed::bench_program(), "proxy", "--trials", "3", "--pods", "1"});
  CHECK(bench.wait(2min) == 0);
  const auto table = bench.output();
  CAPTURE(table);
  CAPTURE(bench.errors());
  for (const auto* call : {"\nVersion ", "\nListPodSandbox ", "\nContainerStatus ", "\nRunPodSandbox, refused "})
    CHECK(table.find(call) != std::string::npos);
  CHECK(table.find("nan") == std::string::npos);
  CHECK(table.find("inf") == std::string::npos);
}

TEST_CASE("the bench of streams has a row for every situation, in which events came and were told") {
  testbed::Process bench(
      {testbed::bench_program(), "streams", "--trials", "1", "--subscribers", "20", "--rate", "400", "-o", "json"});
  CHECK(bench.wait(3min) == 0);
  CAPTURE(bench.errors());
  const auto parsed = boost::json::parse(bench.output());
  const auto& rows = parsed.at("results").as_array();
  REQUIRE(rows.size() == 3);
  const auto number = [&](std::size_t row, const char* key) { return rows[row].at(key).to_number<double>(); };
  CHECK(number(0, "eventsPerSecond") == 0);
  CHECK(number(1, "eventsPerSecond") > 0);
  CHECK(number(2, "eventsPerSecond") > 0);
  CHECK(number(1, "toldPerSecond") == 0);
  CHECK(number(2, "toldPerSecond") > 0);
  for (std::size_t row = 0; row < 3; ++row)
    CHECK(rows[row].at("crossingToKillMs").at("median").to_number<double>() > 0);
}

TEST_CASE("an interrupted bench leaves nothing behind") {
  testbed::Process bench({testbed::bench_program(), "oom", "--trials", "1"});
  std::optional<pid_t> worker;
  testbed::wait_until("the bench has made its node", 1min, [&] {
    worker = child_of(bench.pid());
    return worker && things_of(*worker).size() > 1;
  });
  bench.signal(SIGINT);
  CHECK(bench.wait(1min) == 128 + SIGINT);
  CHECK(things_of(*worker).empty());
}

// The limits are generous: a busy machine's stalls put together what came one after the other.
TEST_CASE("nodes that start, lose their server or evict together are spread, and a storm is bounded and told once") {
  const bench::ClusterOptions options{.nodes = 120,
                                      .pods = 12,
                                      .evictions = 5,
                                      .start_spread = 9s,
                                      .outage = 2s,
                                      .between_evictions = 50ms,
                                      .rest = 4s,
                                      .haste = 150};
  const auto result = bench::measure_cluster(options);
  CAPTURE(bench::report_of(result, options).text);
  using bench::Call;
  const int nodes = options.nodes;

  CHECK(result.start.count(Call::List) == nodes);
  CHECK(result.start.peak(Call::List) <= nodes / 3);
  CHECK(std::ranges::max(result.outage.turned_away) <= nodes / 2);
  CHECK(result.back.count(Call::Watch) == nodes);
  CHECK(result.back.peak(Call::Watch) <= nodes / 2);
  CHECK(result.ended.count(Call::Watch) == nodes);
  CHECK(result.ended.peak(Call::Watch) <= nodes / 2);
  CHECK(result.back.count(Call::List) + result.ended.count(Call::List) == 0);

  CHECK(result.told.statuses == nodes * options.evictions);
  CHECK(result.told.events == nodes * options.evictions);
  CHECK(result.told.again == 0);
  CHECK(result.storm.count(Call::Conditions) == nodes);
  CHECK(result.storm.count(Call::Taints) == nodes);
  // Two for each eviction, the node's conditions and taints, and an Event a minute.
  const int minutes = 1 + static_cast<int>(result.storm.seconds / 60);
  CHECK(result.storm.most_of_a_node <= 2 * options.evictions + 2 + minutes);
  CHECK(result.calm.most_of_a_node == 2);

  CHECK(result.rest.bookmarks > 0);
  CHECK(result.rest.count(Call::Watch) > 0);
  CHECK(result.rest.count(Call::Conditions) > 0);
  CHECK(result.rest.count(Call::List) + result.rest.count(Call::ReadNode) + result.rest.count(Call::Taints) == 0);
  for (const auto* phase : {&result.start, &result.back, &result.ended, &result.storm, &result.calm, &result.rest})
    CHECK(phase->count(Call::Other) == 0);
}

TEST_CASE("the course of an eviction is read from what was seen") {
  // Time, the node, the pod; MiB.
  const std::vector<bench::Sample> samples{{0, 600 * mebi, 500 * mebi},
                                           {10, 701 * mebi, 600 * mebi},
                                           {20, 750 * mebi, 650 * mebi},
                                           {30, 750 * mebi, 650 * mebi},
                                           {40, 730 * mebi, 618 * mebi},
                                           {50, 120 * mebi, 32 * mebi},
                                           {60, 90 * mebi, 0}};
  const auto course = bench::course_of(samples, 700 * mebi);
  CHECK(course.crossing == 10);
  CHECK(course.growth_over == 20);
  CHECK(course.first_release == 40);
  CHECK(course.released == 50);
  CHECK(course.peak_of_node == 750 * mebi);
  CHECK_FALSE(bench::course_of(samples, 800 * mebi).crossing);
}

TEST_CASE("figures are an object for programs and a line of a table for people") {
  const std::vector<double> none;
  const std::vector<bench::Row> rows{
      {{"name", "", "one"}, {"secret", 1}, {"ms", "ms", std::vector{4.0, 2.0}, "{median:.1f}"}},
      {},
      {{"", "", "another"}, {"ms", "ms", none, "{median:.1f}"}}};
  CHECK(bench::table_of(rows) == "          ms\none      3.0\n\nanother    -\n");
  CHECK(bench::json_of(rows[0]) == boost::json::parse(R"({"name": "one", "secret": 1, "ms": [4.0, 2.0]})"));
  CHECK(bench::json_of(rows[2]) == boost::json::parse(R"({"ms": []})"));
  CHECK(bench::filled("{a} of {b:.1f}", boost::json::parse(R"({"a": 1, "b": 2.0})")) == "1 of 2.0");
}

TEST_CASE("a summary has the median, the ninth decile and the greatest") {
  const auto ten = bench::summarize({10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(ten.median == 5.5);
  CHECK(ten.p90 == 9);
  CHECK(ten.max == 10);
  const auto one = bench::summarize({3});
  CHECK(one.median == 3);
  CHECK(one.p90 == 3);
}

}  // namespace integration::bench_test
