#pragma once
#include <cstddef>
#include <ostream>
#include <string>

#include "evictctl/table.hpp"
#include "evictctl/text.hpp"
#include "evictd.pb.h"

namespace evictd::ctl {

/// Events for people, one row each as they come. A line names the day wherever it changes, and at the beginning unless
/// it is today.
class EventTable {
 public:
  EventTable(std::ostream& out, std::size_t width, TimePoint now);

  void print(const v1::Event& event);

 private:
  std::ostream& out_;
  std::size_t width_;
  std::string day_;
  bool begun_ = false;
};

/// What happened and how long after the wake-up: "default/bloat: stopped app [memcg +2.1 ms]".
[[nodiscard]] std::string event_text(const v1::Event& event);

}  // namespace evictd::ctl
