#include "api/audit.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "rpc/code_name.hpp"

namespace evictd::api {
namespace {

/// More is not told of one call: who changes as much at once sees it in what follows.
constexpr std::size_t most_lines = 32;
constexpr std::size_t longest_line = 256;

/// One short line, whatever was sent.
std::string bounded(std::string_view text) {
  std::string line(text.substr(0, longest_line));
  while (text.size() > longest_line && !line.empty() && (static_cast<unsigned char>(line.back()) & 0x80) != 0)
    line.pop_back();  // a text field of protobuf is valid UTF-8, cut or not
  std::ranges::replace_if(line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text.size() > longest_line ? line + "…" : line;
}

v1::Audit new_audit(const Caller& caller, std::string_view call, const grpc::Status& outcome) {
  v1::Audit audit;
  audit.set_caller(caller.name);
  audit.set_call(std::string(call));
  audit.set_outcome(outcome.ok()
                        ? "done"
                        : fmt::format("{}: {}", rpc::name_of(outcome.error_code()), bounded(outcome.error_message())));
  return audit;
}

/// False once there are too many; the last line then says how many there are.
bool add(v1::Audit& audit, std::size_t all, const std::string& before, const std::string& after) {
  const auto told = static_cast<std::size_t>(audit.before_size());
  if (told == most_lines) {
    audit.add_before(fmt::format("… and {} more", all - told));
    audit.add_after("…");
    return false;
  }
  audit.add_before(bounded(before));
  audit.add_after(bounded(after));
  return true;
}

/// "memory.available: 100Mi -> 500Mi"
void add_changed(v1::Audit& audit, const v1::UpdateThresholdsResponse& response) {
  constexpr std::string_view arrow = " -> ";
  for (const auto& line : response.changes()) {
    const auto colon = line.find(": ");
    const auto middle = line.find(arrow, colon == std::string::npos ? 0 : colon);
    const bool is_change = colon != std::string::npos && middle != std::string::npos;
    const auto what = is_change ? line.substr(0, colon + 2) : "";
    if (!add(audit, static_cast<std::size_t>(response.changes_size()), is_change ? line.substr(0, middle) : "",
             is_change ? what + line.substr(middle + arrow.size()) : line))
      return;
  }
}

std::string in_force(const v1::ThresholdChange& change, const v1::ThresholdSet* now) {
  if (now == nullptr) return "unknown";
  for (const auto& setting : now->thresholds()) {
    const auto& threshold = setting.threshold();
    const bool is_soft = threshold.grace_period().seconds() > 0 || threshold.grace_period().nanos() > 0;
    if (threshold.signal() == change.signal() && is_soft == change.soft()) return threshold.value();
  }
  return "none";
}

/// Of a change that was refused.
void add_asked(v1::Audit& audit, const v1::UpdateThresholdsRequest& request, const v1::ThresholdSet* now) {
  const auto all = static_cast<std::size_t>(request.changes_size());
  for (const auto& change : request.changes()) {
    const auto what = fmt::format("{}{}", bounded(change.signal()), change.soft() ? " (soft)" : "");
    if (!add(audit, all, fmt::format("{}: {}", what, in_force(change, now)),
             fmt::format("{}: {}", what, change.value().empty() ? "none" : change.value())))
      return;
  }
  if (request.replace() && !add(audit, all + 1, "all others: as they are", "all others: none")) return;
  if (request.apply_staged()) static_cast<void>(add(audit, all + 1, "held back: not in force", "held back: in force"));
}

}  // namespace

v1::Audit audit_thresholds(const Caller& caller, const grpc::Status& outcome,
                           const v1::UpdateThresholdsRequest& request, const v1::UpdateThresholdsResponse* response,
                           const v1::ThresholdSet* now) {
  auto audit = new_audit(caller, "UpdateThresholds", outcome);
  if (response != nullptr)
    add_changed(audit, *response);
  else
    add_asked(audit, request, now);
  return audit;
}

v1::Audit audit_admission(const Caller& caller, std::string_view call, const grpc::Status& outcome,
                          const std::vector<AdmissionRequest>& pods, const std::vector<v1::AdmitResponse>& answers) {
  auto audit = new_audit(caller, call, outcome);
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const auto& update = pods[i].update;
    const auto key = update ? fmt::format("container {}", update->container_id) : pods[i].pod.key();
    std::string verdict = "undecided";
    if (i < answers.size())
      verdict = answers[i].admitted() ? "admitted" : fmt::format("rejected ({})", answers[i].reason());
    const auto* done = pods[i].refused ? ", resize refused by the runtime" : pods[i].resize ? ", resized" : "";
    const auto what = key + done;
    if (!add(audit, pods.size(), fmt::format("{}: undecided", what), fmt::format("{}: {}", what, verdict))) break;
  }
  return audit;
}

v1::Audit audit_pre_kill(const Caller& caller, const grpc::Status& outcome, const std::string& name) {
  auto audit = new_audit(caller, "PreKill", outcome);
  if (!name.empty())
    static_cast<void>(add(audit, 1, fmt::format("{}: not asked", name), fmt::format("{}: asked before kills", name)));
  return audit;
}

}  // namespace evictd::api
