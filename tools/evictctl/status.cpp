#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <chrono>
#include <cstdint>
#include <ostream>
#include <utility>

#include "evictctl/answers.hpp"
#include "evictctl/ask.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/forecast.hpp"
#include "evictctl/paint.hpp"

namespace evictd::ctl {
namespace {

/// "12s ago", or `never` where there is no time.
std::string ago(bool present, const google::protobuf::Timestamp& time, TimePoint now, const char* never) {
  return present ? duration_text(now - to_time_point(time)) + " ago" : never;
}

std::string runtime_text(const v1::Runtime& runtime) {
  if (runtime.endpoint().empty()) return "-";
  const auto name = runtime.name().empty() ? "" : fmt::format("{} {}, ", runtime.name(), runtime.version());
  return fmt::format("{}{} at {}", name, runtime.connected() ? "connected" : "NOT CONNECTED", runtime.endpoint());
}

std::string reports_text(const v1::ClusterReports& reports, TimePoint now) {
  auto text = fmt::format("{} waiting", reports.waiting());
  if (reports.has_oldest()) text += fmt::format(" for {}", duration_text(now - to_time_point(reports.oldest())));
  text += fmt::format(", {} pods, {} events, {} node updates, {} dropped", reports.statuses(), reports.events(),
                      reports.node_updates(), reports.dropped());
  // An error that a success came after is history.
  const bool failing =
      reports.has_last_failure() &&
      (!reports.has_last_success() || to_time_point(reports.last_success()) < to_time_point(reports.last_failure()));
  return failing ? fmt::format("{}; {}", text, reports.last_error()) : text;
}

/// "ready, waits at most 1m30s, pods may take 30s"
std::string shutdown_text(const v1::ShutdownStatus& shutdown) {
  const auto text = [](const google::protobuf::Duration& time) { return duration_text(to_nanoseconds(time)); };
  auto line = shutdown.state() == "failed" ? "FAILED" : shutdown.state();
  if (shutdown.has_inhibit_delay() && shutdown.inhibit_delay().seconds() > 0)
    line += fmt::format(", waits at most {}", text(shutdown.inhibit_delay()));
  line += fmt::format(", pods may take {}", text(shutdown.grace_period()));
  return shutdown.error().empty() ? line : fmt::format("{}; {}", line, shutdown.error());
}

using Line = std::vector<Cell>;

/// What is not well stands out.
Style warns_if(bool bad) { return bad ? Style::Warning : Style::Plain; }

std::vector<Line> summary(const v1::NodeStatus& status, TimePoint now) {
  const auto uptime =
      status.has_started() ? fmt::format(", up {}", duration_text(now - to_time_point(status.started()))) : "";
  std::vector<Line> lines;
  lines.push_back({"evictd",
                   {or_dash(status.version()) + uptime + (status.dry_run() ? ", DRY RUN: nothing is evicted" : ""),
                    warns_if(status.dry_run())}});
  const bool away = !status.runtime().endpoint().empty() && !status.runtime().connected();
  lines.push_back({"runtime", {runtime_text(status.runtime()), warns_if(away)}});
  lines.push_back({"counts", fmt::format("pods {}, passes {}, evictions {}, last event {}", status.pods(),
                                         status.passes(), status.evictions(), status.last_event_sequence())});
  if (status.has_cluster_reports()) lines.push_back({"reports", reports_text(status.cluster_reports(), now)});
  if (status.has_shutdown())
    lines.push_back({"shutdown", {shutdown_text(status.shutdown()), warns_if(!status.shutdown().error().empty())}});
  if (!status.thresholds_revision().empty())
    lines.push_back({"revision", fmt::format("{} of the thresholds, from {}", status.thresholds_revision(),
                                             status.threshold_documents().empty()
                                                 ? "the kubelet's defaults"
                                                 : fmt::format("{}", fmt::join(status.threshold_documents(), ", ")))});
  for (const auto& warning : status.warnings()) lines.push_back({"warning", {warning, Style::Warning}});
  for (const auto& change : status.staged())
    lines.push_back({"staged", {change + " (held back, since it would evict at once)", Style::Warning}});
  return lines;
}

Table conditions(const v1::NodeStatus& status, TimePoint now) {
  Table table({left("CONDITION"), left("STATUS"), left("CHANGED")});
  for (const auto& condition : status.conditions())
    table.add({condition.type(),
               {condition.status() ? "True" : "False", condition.status() ? Style::Bad : Style::Plain},
               ago(condition.has_since(), condition.since(), now, "-")});
  return table;
}

std::string threshold_text(const v1::Threshold& threshold) {
  const auto grace = to_nanoseconds(threshold.grace_period());
  return threshold.value() + (grace.count() > 0 ? " for " + duration_text(grace) : "");
}

/// A signal with one of its thresholds, if it has any. What does not change with the threshold is told once.
std::vector<Cell> signal_row(const v1::SignalStatus& signal, const v1::ThresholdStatus* threshold, bool first,
                             TimePoint now) {
  const auto once = [first](std::string text) { return first ? std::move(text) : std::string(); };
  const auto left = forecast(signal).left;
  const bool met = threshold != nullptr && threshold->has_met_since();
  const auto style = met ? Style::Bad : Style::Plain;
  return {once(signal.signal()),
          {once(signal.has_available() ? amount_text(signal.unit(), signal.available()) : "-"), style},
          once(signal.has_capacity() ? amount_text(signal.unit(), signal.capacity()) : "-"),
          {threshold == nullptr ? "-" : threshold_text(threshold->threshold()), style},
          once(rate_text(signal)),
          once(left ? duration_text(*left) : "-"),
          threshold == nullptr ? "-" : or_dash(threshold->threshold().minimum_reclaim()),
          {met ? ago(true, threshold->met_since(), now, "-") : "-", style}};
}

Table signals(const v1::NodeStatus& status, TimePoint now) {
  Table table({left("SIGNAL"), right("AVAILABLE"), right("OF"), left("EVICTS BELOW"), in_wide(right("RATE")),
               in_wide(right("LEFT")), in_wide(left("MIN RECLAIM")), left("MET")});
  for (const auto& signal : status.signals()) {
    if (signal.thresholds().empty()) table.add(signal_row(signal, nullptr, true, now));
    for (bool first = true; const auto& threshold : signal.thresholds())
      table.add(signal_row(signal, &threshold, std::exchange(first, false), now));
  }
  return table;
}

/// Only where something was lost.
std::string lost(const v1::WakeSource& source) {
  if (source.re_registrations() == 0 && source.missed() == 0) return {};
  return fmt::format("; registered anew {}x, missed {}", source.re_registrations(), source.missed());
}

Table wake_sources(const v1::NodeStatus& status, TimePoint now) {
  Table table({left("WAKE SOURCE"), right("ARMED AT"), right("WAKE-UPS"), left("LAST"), in_wide(right("RE-ARMED")),
               left("STATE")});
  for (const auto& source : status.wake_sources())
    table.add({source.name(),
               source.has_arm_level_bytes() ? bytes_text(source.arm_level_bytes()) : "-",
               std::to_string(source.wake_ups()),
               ago(source.has_last_wake(), source.last_wake(), now, "never"),
               std::to_string(source.rearms()),
               {source.state() + (source.detail().empty() ? "" : "; " + source.detail()) + lost(source),
                warns_if(source.state().starts_with("failed"))}});
  return table;
}

Table pod_sources(const v1::NodeStatus& status, TimePoint now) {
  Table table({left("POD SOURCE"), right("PODS"), left("CONTACT"), left("STATE")});
  for (const auto& source : status.pod_sources()) {
    auto state = source.state();
    if (source.has_stale_since())
      state += fmt::format(" for {}", duration_text(now - to_time_point(source.stale_since())));
    if (!source.error().empty()) state += "; " + source.error();
    table.add({source.name(),
               std::to_string(source.pods()),
               ago(source.has_last_contact(), source.last_contact(), now, "never"),
               {state, warns_if(source.state() == "stale")}});
  }
  return table;
}

Table in_flight(const v1::NodeStatus& status, TimePoint now) {
  Table table({right("EVICTION"), left("BEGAN"), right("EXPECTED"), in_wide(left("UID")), left("POD")});
  for (const auto& eviction : status.in_flight())
    table.add({std::to_string(eviction.eviction_id()), ago(eviction.has_since(), eviction.since(), now, "-"),
               bytes_text(eviction.bytes()), eviction.pod().uid(), key_of(eviction.pod())});
  return table;
}

Table latencies(const v1::NodeStatus& status) {
  Table table(
      {left("LATENCY OF"), left("STAGE"), left("SINCE"), right("COUNT"), right("MEDIAN"), right("P90"), right("MAX")});
  std::string above;
  for (const auto& stage : status.latencies()) {
    const auto text = [](std::int64_t time) { return latency_text(std::chrono::microseconds(time)); };
    table.add({stage.signal() == above ? "" : stage.signal(), stage.name(), stage.since(),
               std::to_string(stage.count()), text(stage.median_us()), text(stage.p90_us()), text(stage.max_us())});
    above = stage.signal();
  }
  return table;
}

}  // namespace

void print_status(std::ostream& out, const v1::NodeStatus& status, const TableLook& look, TimePoint now) {
  const std::vector<Column> columns{left("", 8), left("")};
  for (const auto& line : summary(status, now)) print_row(out, columns, line, look);
  for (const auto& table : {conditions(status, now), signals(status, now), wake_sources(status, now),
                            pod_sources(status, now), in_flight(status, now), latencies(status)}) {
    if (table.empty()) continue;
    out << '\n';
    table.print(out, look);
  }
}

void add_status(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("status", "How the node and the agent stand");
  context.on(*command, [&context, asking = add_watch(*command)] {
    const auto print = [](std::ostream& out, const v1::NodeStatus& status, const TableLook& look) {
      print_status(out, status, look, std::chrono::system_clock::now());
    };
    return ask(context, &v1::EvictionService::Stub::GetNodeStatus, v1::GetNodeStatusRequest(), print, *asking);
  });
}

}  // namespace evictd::ctl
