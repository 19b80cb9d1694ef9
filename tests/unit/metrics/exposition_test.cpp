#include "metrics/exposition.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>
#include <string>
#include <string_view>

#include "metrics/filled.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/work_directory.hpp"

namespace evictd::metrics::exposition_test {

using namespace std::chrono_literals;
using evictd::metrics::Exposition;
using evictd::test::filled_text;

namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

std::size_t count_lines(const std::string& text, std::string_view beginning) {
  std::istringstream lines(text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.starts_with(beginning);
  return count;
}

std::string scrape(const Exposition& exposition) { return exposition.text({}); }

}  // namespace

TEST_CASE("promtool finds nothing to say about the metrics") {
  const testbed::WorkDirectory directory;
  const auto file = directory.path() / "metrics.txt";
  for (const auto& text : {filled_text(), scrape(Exposition{})}) {
    testbed::replace_file(file, text);
    auto promtool = directory.spawn({"sh", "-c", fmt::format("exec promtool check metrics < {}", file.native())});
    const auto exit_code = promtool.wait(60s);
    CHECK(exit_code == 0);
    CHECK(promtool.output() == "");
    CHECK(promtool.errors() == "");
  }
}

TEST_CASE("what happened is counted by what it was about") {
  const auto text = filled_text();
  INFO(text);
  CHECK(has_line(text, R"(evictd_evictions_total{reason="Evicted",signal="memory.available"} 2)"));
  CHECK(has_line(text, R"(evictd_evictions_total{reason="Preempting",signal="preemption"} 1)"));
  CHECK(has_line(text, R"(evictd_dry_run_evictions_total{reason="Evicted",signal="memory.available"} 1)"));
  CHECK(has_line(text, R"(evictd_thresholds_crossed_total{kind="soft",signal="memory.available"} 1)"));
  CHECK(has_line(text, R"(evictd_cleanups_total{outcome="done"} 1)"));
  CHECK(has_line(text, R"(evictd_cleanups_total{outcome="timed_out"} 1)"));
  CHECK(has_line(text, R"(evictd_eviction_failures_total{step="StopContainer"} 1)"));
  CHECK(has_line(text, R"(evictd_released_bytes_total 1048576)"));
  CHECK(has_line(text, R"(evictd_images_removed_total 3)"));
  CHECK(has_line(text, R"(evictd_admission_rejections_total{handler="sysctl",reason="SysctlForbidden"} 1)"));
  CHECK(has_line(text, R"(evictd_audited_calls_total{call="UpdateThresholds",outcome="PERMISSION_DENIED"} 1)"));
  CHECK(has_line(text, R"(evictd_audited_calls_total{call="UpdateThresholds",outcome="done"} 1)"));
  CHECK(has_line(text, R"(evictd_config_reloads_total 1)"));
  CHECK(has_line(text, R"(evictd_trimmed_bytes_total 5242880)"));
  CHECK(has_line(text, R"(evictd_source_failures_total{source="psi"} 1)"));
  CHECK(has_line(text, R"(evictd_kernel_oom_kills_total{own_choice="true",shortage="limit"} 3)"));
  CHECK(has_line(text, R"(evictd_kernel_oom_kills_total{own_choice="false",shortage="node"} 0)"));
  CHECK(has_line(text, R"(evictd_events_total{kind="AUDIT"} 2)"));
  CHECK(has_line(text, R"(evictd_cri_calls_total{code="DEADLINE_EXCEEDED",method="StopContainer"} 1)"));
  CHECK(has_line(text, R"(evictd_cri_call_duration_seconds_bucket{method="StopContainer",le="0.1"} 1)"));
  CHECK(has_line(text, R"(evictd_cri_call_duration_seconds_count{method="StopContainer"} 2)"));
}

TEST_CASE("how the node stands is told in base units, one unit a family") {
  const auto text = filled_text();
  INFO(text);
  CHECK(has_line(text, R"(evictd_signal_available_bytes{signal="memory.available"} 1073741824)"));
  CHECK(has_line(text, R"(evictd_signal_capacity_inodes{signal="nodefs.inodesFree"} 5000000)"));
  CHECK(has_line(text, R"(evictd_signal_threshold_pids{signal="pid.available",kind="hard"} 100)"));
  CHECK(has_line(text, R"(evictd_signal_threshold_met{signal="pid.available",kind="hard"} 0)"));
  CHECK(has_line(text, R"(evictd_signal_threshold_met{signal="pid.available",kind="soft"} 1)"));
  CHECK(has_line(text, R"(evictd_signal_threshold_grace_period_seconds{signal="pid.available",kind="soft"} 90)"));
  CHECK(has_line(text, R"(evictd_signal_fill_bytes_per_second{signal="memory.available"} 2.5)"));
  CHECK(has_line(text, R"(evictd_node_condition{condition="MemoryPressure"} 1)"));
  CHECK(has_line(text, R"(evictd_build_info{version="1.2.3"} 1)"));
  CHECK(has_line(text, R"(evictd_start_time_seconds 1700000000)"));
  CHECK(has_line(text, R"(evictd_in_flight_bytes 67108864)"));
  CHECK(has_line(text, R"(evictd_evictions_in_flight 1)"));
  CHECK(has_line(text, R"(evictd_event_log_kept 40)"));
  CHECK(has_line(text, R"(evictd_events_dropped_total 5)"));
  CHECK(has_line(text, R"(evictd_event_subscribers 3)"));
  CHECK(has_line(text, R"(evictd_event_last_sequence 41)"));
  CHECK(has_line(text, R"(evictd_cluster_reports_sent_total{report="status"} 8)"));
  CHECK(count_lines(text, "evictd_process_resident_memory_bytes ") == 1);
}

TEST_CASE("of two thresholds without a grace period that is told which is met first") {
  auto snapshot = test::full_snapshot();
  auto& signal = *snapshot.node.mutable_signals(0);
  for (const std::int64_t resolved : {500, 700, 600}) {
    auto& threshold = *signal.add_thresholds();
    threshold.mutable_threshold()->set_resolved(std::int64_t{1} << 40 | resolved);
    if (resolved == 700) threshold.mutable_met_since()->set_seconds(1);
  }
  const auto text = Exposition{}.text(snapshot);
  INFO(text);
  const auto labels = fmt::format(R"({{signal="{}",kind="hard"}})", signal.signal());
  CHECK(count_lines(text, "evictd_signal_threshold_met" + labels) == 1);
  CHECK(has_line(text, "evictd_signal_threshold_met" + labels + " 1"));
  CHECK(count_lines(text, "evictd_signal_threshold_bytes" + labels) == 1);
}

TEST_CASE("levels of one source are one source: they share their counts") {
  const auto text = filled_text();
  INFO(text);
  CHECK(has_line(text, R"(evictd_wake_ups_total{source="memcg",target="memory.available"} 9)"));
  CHECK(has_line(text, R"(evictd_notifier_rearms_total{source="memcg",target="memory.available"} 4)"));
  CHECK(has_line(text, R"(evictd_wake_source_failed{source="psi",target="/kubepods"} 1)"));
  CHECK(has_line(text, R"(evictd_wake_ups_total{source="timer",target=""} 12)"));
  CHECK(count_lines(text, R"(evictd_wake_ups_total{source="memcg")") == 1);
}

TEST_CASE("what was lost, missed or told for nothing and how late the loop was are told") {
  const auto text = filled_text();
  INFO(text);
  CHECK(has_line(text, R"(evictd_notifier_re_registrations_total{source="self-test",target="/evictd-probe"} 2)"));
  CHECK(has_line(text, R"(evictd_notifier_missed_total{source="self-test",target="/evictd-probe"} 3)"));
  CHECK(has_line(text, R"(evictd_notifier_missed_total{source="timer",target=""} 0)"));
  CHECK(has_line(text, R"(evictd_notifier_spurious_total{source="tripwire",target="/kubepods"} 2)"));
  CHECK(has_line(text, R"(evictd_notifier_spurious_total{source="timer",target=""} 0)"));
  CHECK(has_line(text, "evictd_reactor_long_turns_total 6"));
  CHECK(has_line(text, "evictd_reactor_longest_turn_seconds 0.25"));
  CHECK(has_line(text, "evictd_reactor_busiest_turn_seconds 0.03"));
  CHECK(has_line(text, "evictd_standstills_total 1"));
  CHECK(has_line(text, "evictd_longest_standstill_seconds 3"));
}

TEST_CASE("the latencies of evictions are histograms, whose buckets add up") {
  const auto text = filled_text();
  INFO(text);
  const std::string labels = R"(signal="memory.available",stage="first_kill")";
  const auto bucket = [&](const char* bound, int count) {
    return fmt::format("evictd_eviction_stage_duration_seconds_bucket{{{},le=\"{}\"}} {}", labels, bound, count);
  };
  CHECK(has_line(text, bucket("0.0005", 1)));
  CHECK(has_line(text, bucket("0.001", 4)));
  CHECK(has_line(text, bucket("0.002", 4)));
  CHECK(has_line(text, bucket("+Inf", 6)));
  CHECK(has_line(text, fmt::format("evictd_eviction_stage_duration_seconds_count{{{}}} 6", labels)));
  CHECK(has_line(text, fmt::format("evictd_eviction_stage_duration_seconds_sum{{{}}} 0.0045", labels)));
}

TEST_CASE("the age of the numbers that a pod went for is told by signal, and only where a threshold acted") {
  const auto text = filled_text();
  INFO(text);
  const auto line = [](std::string_view what, std::string_view more, int value) {
    return fmt::format(R"(evictd_eviction_stats_age_seconds_{}{{signal="memory.available"{}}} {})", what, more, value);
  };
  CHECK(has_line(text, line("bucket", R"(,le="0.0025")", 0)));
  CHECK(has_line(text, line("bucket", R"(,le="0.005")", 3)));
  CHECK(has_line(text, line("bucket", R"(,le="0.05")", 3)));
  CHECK(has_line(text, line("bucket", R"(,le="10")", 3)));
  CHECK(has_line(text, line("count", "", 3)));
  CHECK(count_lines(text, "evictd_eviction_stats_age_seconds_count{") == 1);
}

TEST_CASE("a change of the configuration that was refused or is held back is not counted as one") {
  Exposition exposition;
  evictd::v1::Event event;
  event.set_kind(evictd::v1::Event::CONFIG_CHANGED);
  event.set_message("the configuration is refused, and the old one stays: agent.yaml:3: log.levl: unknown key");
  exposition.count(event);
  CHECK(has_line(scrape(exposition), R"(evictd_config_reloads_total 0)"));
  event.mutable_config_changed()->add_changes("memory.available: 100Mi -> 150Mi");
  exposition.count(event);
  CHECK(has_line(scrape(exposition), R"(evictd_config_reloads_total 1)"));
}

TEST_CASE("what may be counted is there from the start: a first increment shows as an increase") {
  const auto text = scrape(Exposition{});
  CHECK(has_line(text, R"(evictd_evictions_total{reason="Evicted",signal="memory.available"} 0)"));
  CHECK(has_line(text, R"(evictd_evictions_total{reason="Evicted",signal="pid.available"} 0)"));
  for (const auto* limit : {"emptydirfs.limit", "ephemeralpodfs.limit", "ephemeralcontainerfs.limit"})
    CHECK(has_line(text, fmt::format(R"(evictd_evictions_total{{reason="Evicted",signal="{}"}} 0)", limit)));
  for (const auto* step : {"select", "begin", "kill", "StopContainer", "ListPodSandbox", "StopPodSandbox"})
    CHECK(has_line(text, fmt::format(R"(evictd_eviction_failures_total{{step="{}"}} 0)", step)));
  CHECK(has_line(text, R"(evictd_cleanups_total{outcome="timed_out"} 0)"));
  CHECK(has_line(text, R"(evictd_config_reloads_total 0)"));
}

TEST_CASE("no pod's name is in the metrics, and reasons that pods can choose do not grow without bound") {
  CHECK(filled_text().find("someones-secret") == std::string::npos);
  Exposition exposition;
  for (int i = 0; i < 1000; ++i) {
    evictd::v1::Event event;
    event.set_kind(evictd::v1::Event::ADMISSION_REJECTED);
    event.mutable_admission_rejected()->set_handler("predicates");
    event.mutable_admission_rejected()->set_reason(fmt::format("OutOfexample.com/{}", i));
    exposition.count(event);
  }
  const auto text = scrape(exposition);
  CHECK(count_lines(text, "evictd_admission_rejections_total{") == 65);
  CHECK(has_line(text, R"(evictd_admission_rejections_total{handler="other",reason="other"} 936)"));
  CHECK(has_line(text, R"(evictd_events_total{kind="ADMISSION_REJECTED"} 1000)"));
}

TEST_CASE("a reason that is no text does not cost the scrape") {
  Exposition exposition;
  evictd::v1::Event event;
  event.set_kind(evictd::v1::Event::ADMISSION_REJECTED);
  event.mutable_admission_rejected()->set_handler("predicates");
  event.mutable_admission_rejected()->set_reason("\xff\xfe\"\n\\" + std::string(1000, 'x'));
  exposition.count(event);
  const testbed::WorkDirectory directory;
  testbed::replace_file(directory.path() / "metrics.txt", scrape(exposition));
  testbed::run({"sh", "-c", fmt::format("promtool check metrics < {}/metrics.txt", directory.path().native())});
}

}  // namespace evictd::metrics::exposition_test
