#include "benchmarks/soak/diary.hpp"

#include <fmt/format.h>

#include <functional>

namespace bench::soak {

using evictd::v1::Event;

bool Ledger::agrees(const Event& event) {
  // As text: its bytes are the same each time only if its maps are written in order, and the text has them so.
  const auto digest = std::hash<std::string>{}(event.ShortDebugString());
  const std::lock_guard lock{mutex_};
  if (newest_ < event.sequence()) newest_ = event.sequence();
  return digests_.try_emplace(event.sequence(), digest).first->second == digest;
}

std::string Diary::read(const Event& event) {
  switch (event.kind()) {
    case Event::SNAPSHOT:
      return last_ ? "a SNAPSHOT that is not the first message" : follows(event.sequence(), event.sequence());
    case Event::HEARTBEAT:
      if (last_.value_or(event.sequence()) == event.sequence()) return "";
      return fmt::format("a HEARTBEAT of {} after {}", event.sequence(), *last_);
    case Event::GAP:
      ++gaps_;
      if (event.gap().to() != event.sequence())
        return fmt::format("a GAP to {} of number {}", event.gap().to(), event.sequence());
      return follows(event.gap().from(), event.gap().to());
    default: break;
  }
  ++events_;
  const bool agrees = ledger_.agrees(event);
  auto wrong = follows(event.sequence(), event.sequence());
  if (wrong.empty() && !agrees) wrong = fmt::format("event {} is not what another was told", event.sequence());
  return wrong;
}

std::string Diary::follows(std::uint64_t first, std::uint64_t last) {
  const auto before = last_;
  last_ = last;
  if (last < first) return fmt::format("numbers {} to {}", first, last);
  if (!before || first == *before + 1) return "";
  return fmt::format("after {} comes {}", *before, first);
}

}  // namespace bench::soak
