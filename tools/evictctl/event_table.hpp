#pragma once
#include <ostream>
#include <string>

#include "evictctl/paint.hpp"
#include "evictctl/table.hpp"
#include "evictctl/text.hpp"
#include "evictd.pb.h"

namespace evictd::ctl {

/// Events for people, one row each as they come. A line names the day wherever it changes, and at the beginning unless
/// it is today.
class EventTable {
 public:
  EventTable(std::ostream& out, const TableLook& look, TimePoint now);

  void print(const v1::Event& event);

 private:
  std::ostream& out_;
  TableLook look_;
  std::string day_;
  bool begun_ = false;
};

/// What happened and how long after the wake-up: "default/bloat: stopped app [memcg +2.1 ms]".
[[nodiscard]] std::string event_text(const v1::Event& event);
/// "EVICTION_INTENDED", or the number of one that this client is too old to know.
[[nodiscard]] std::string kind_text(v1::Event::Kind kind);
/// In which its kind is shown.
[[nodiscard]] Style event_style(v1::Event::Kind kind);

}  // namespace evictd::ctl
