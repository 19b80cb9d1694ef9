#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "core/error.hpp"

namespace evictd::v1 {
class Event;
class EventFilter;
}  // namespace evictd::v1

namespace evictd::events {

/// An EventFilter, read once for each stream: a look at an event allocates nothing.
class EventFilter {
 public:
  /// Everything passes.
  EventFilter() = default;

  /// An error is for the client, as INVALID_ARGUMENT: a kind or a signal that there is not, a name that is empty or has
  /// more than 512 bytes, more than 1,024 entries in a list, or more than 64 KiB in all lists, where each entry counts
  /// 64 bytes more than its text has.
  [[nodiscard]] static Result<EventFilter> make(const v1::EventFilter& filter);

  /// A GAP always passes: what was in it is not known.
  [[nodiscard]] bool passes(const v1::Event& event) const;

 private:
  using Names = std::set<std::string, std::less<>>;

  [[nodiscard]] bool passes_pod(const v1::Event& event) const;

  std::uint64_t kinds_ = ~std::uint64_t{0};      // a bit for each kind
  Names namespaces_;                             // empty: all, as in all that follow
  Names pods_;                                   // names and uids
  std::map<std::string, Names> qualified_pods_;  // names by their namespace
  Names signals_;
};

}  // namespace evictd::events
