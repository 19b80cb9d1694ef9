#include "metrics/exposition.hpp"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "metrics/call_metrics.hpp"
#include "metrics/event_counters.hpp"
#include "metrics/node_families.hpp"
#include "metrics/process_families.hpp"

namespace evictd::metrics {

struct Exposition::Parts {
  prometheus::Registry registry;
  EventCounters events{registry};
  CallMetrics calls{registry};
};

Exposition::Exposition() : parts_{std::make_unique<Parts>()} {}
Exposition::~Exposition() = default;

void Exposition::count(const v1::Event& event) { parts_->events.count(event); }
void Exposition::count(std::string_view method, std::string_view code, core::Duration time) {
  parts_->calls.count(method, code, time);
}

std::string Exposition::text(const Snapshot& snapshot) const {
  auto families = parts_->registry.Collect();
  const NodeFamilies node{snapshot};
  const ProcessFamilies process;
  for (const prometheus::Collectable* standing :
       {static_cast<const prometheus::Collectable*>(&node), static_cast<const prometheus::Collectable*>(&process)})
    std::ranges::move(standing->Collect(), std::back_inserter(families));
  std::ranges::sort(families, {}, &prometheus::MetricFamily::name);
  std::ostringstream out;
  prometheus::TextSerializer{}.Serialize(out, families);
  return std::move(out).str();
}

}  // namespace evictd::metrics
