#pragma once
#include <evictd.pb.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "events/event_log.hpp"

namespace evictd::test {

inline events::EventPtr numbered(std::uint64_t number, std::string message = "something happened") {
  v1::Event event;
  event.set_sequence(number);
  event.set_kind(v1::Event::RECOVERED);
  event.set_message(std::move(message));
  return std::make_shared<const v1::Event>(std::move(event));
}

/// Those with the numbers from `first` to `last`.
inline std::vector<events::EventPtr> numbered_from(std::uint64_t first, std::uint64_t last) {
  std::vector<events::EventPtr> events;
  for (auto number = first; number <= last; ++number) events.push_back(numbered(number));
  return events;
}

inline std::vector<std::uint64_t> numbers_of(const std::vector<events::EventPtr>& events) {
  std::vector<std::uint64_t> numbers;
  for (const auto& event : events) numbers.push_back(event->sequence());
  return numbers;
}

inline std::size_t files_in(const std::filesystem::path& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

}  // namespace evictd::test
