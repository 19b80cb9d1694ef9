#include "benchmarks/soak/diary.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <functional>

namespace bench::soak {

using evictd::v1::Event;

namespace {

/// The same event has the same bytes only if its maps are written in order.
std::string bytes_of(const Event& event) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream{&bytes};
    google::protobuf::io::CodedOutputStream coded{&stream};
    coded.SetSerializationDeterministic(true);
    event.SerializeToCodedStream(&coded);
  }
  return bytes;
}

}  // namespace

bool Ledger::agrees(const Event& event) {
  const auto digest = std::hash<std::string>{}(bytes_of(event));
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
