#include "core/action.hpp"

#include <array>
#include <ostream>

#include "core/signal.hpp"

namespace evictd::core {
namespace {

std::string_view name(Measure measure) {
  static constexpr std::array<std::string_view, 4> names{"memory", "processes", "disk", "local storage limits"};
  return names[static_cast<std::size_t>(measure)];
}

struct ActionPrinter {
  std::ostream& out;

  void operator()(const ReadPodUsage& action) const { out << "read pod usage: " << name(action.measure); }
  void operator()(const ReclaimNode& action) const {
    out << "reclaim node:" << (action.containers ? " containers" : "") << (action.images ? " images" : "");
  }
  void operator()(const Eviction& action) const {
    out << "evict " << action.pod->key() << " (" << core::name(action.cause) << ", grace "
        << to_string(action.grace_period) << ")";
  }
  void operator()(const NoVictim& action) const { out << "no victim for " << to_string(action.acted.threshold); }
  void operator()(const RateLimited& action) const {
    out << "no more evictions until " << to_string(action.until.time_since_epoch());
  }
  void operator()(const Recovered& action) const { out << "recovered: " << to_string(action.acted.threshold); }
  void operator()(const ReportCrossing& action) const { out << "crossed " << to_string(action.acted.threshold); }
  void operator()(const ReportConditions& action) const {
    out << "conditions [";
    for (auto separator = ""; const auto condition : action.conditions) {
      out << separator << core::name(condition);
      separator = " ";
    }
    out << "]";
  }
  void operator()(const WakeAt& action) const {
    out << "wake at " << (action.time ? to_string(action.time->time_since_epoch()) : "no time");
  }
  void operator()(const ArmLevels& action) const {
    out << "arm";
    for (const auto& level : action.levels) out << " " << core::name(level.signal) << "<" << level.available;
  }
};

}  // namespace

Measure measure_for(RankBy by) {
  switch (by) {
    case RankBy::Memory: return Measure::Memory;
    case RankBy::Processes: return Measure::Processes;
    case RankBy::EphemeralStorage:
    case RankBy::Inodes: break;
  }
  return Measure::Disk;
}

bool takes_time(const Action& action) {
  const auto* reading = std::get_if<ReadPodUsage>(&action);
  return std::holds_alternative<ReclaimNode>(action) || (reading != nullptr && reading->measure == Measure::Disk);
}

std::ostream& operator<<(std::ostream& out, const Action& action) {
  std::visit(ActionPrinter{out}, action);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Actions& actions) {
  out << "[";
  for (auto separator = ""; const auto& action : actions) {
    out << separator << action;
    separator = "; ";
  }
  return out << "]";
}

}  // namespace evictd::core
