#pragma once
#include <evictd.pb.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/duration.hpp"

namespace evictd::metrics {

/// What is read at a scrape: on the reactor, to be written out elsewhere.
struct Snapshot {
  v1::NodeStatus node;                ///< with last_event_sequence
  std::size_t events_kept = 0;        ///< in the event log
  std::uint64_t events_missed = 0;    ///< events that slow subscribers were not told
  std::size_t event_subscribers = 0;  ///< streams that follow the log
};

/// All metrics of this process, named "evictd_…". What happens is counted as it happens; how things stand is taken from
/// a snapshot. Nothing that grows with the pods becomes a label.
class Exposition {
 public:
  Exposition();
  ~Exposition();
  Exposition(const Exposition&) = delete;
  Exposition& operator=(const Exposition&) = delete;

  /// On the reactor: a few map lookups.
  void count(const v1::Event& event);
  /// A call to the runtime that was answered or given up: gRPC's names of the method and of the status, which have to
  /// stay for good, and the time until the reactor had its answer. On the reactor. A method's first call and its first
  /// call with a code allocate, no other does.
  void count(std::string_view method, std::string_view code, core::Duration time);

  /// The text format of Prometheus, version 0.0.4. Takes about a millisecond. On any thread, while the reactor counts
  /// on.
  [[nodiscard]] std::string text(const Snapshot& snapshot) const;
  static constexpr const char* content_type = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Parts;  // prometheus-cpp's headers stay in the sources
  std::unique_ptr<Parts> parts_;
};

}  // namespace evictd::metrics
