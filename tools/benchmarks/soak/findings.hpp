#pragma once
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::soak {

/// What went against a property, a line each; and how often what else happened. From any thread.
class Findings {
 public:
  static constexpr std::size_t most_lines = 50;  ///< what goes wrong once goes wrong often

  void add(std::string line) {
    const std::lock_guard lock{mutex_};
    ++count_;
    if (lines_.size() == most_lines) return;
    fmt::print(stderr, "VIOLATED: {}\n", line);
    lines_.push_back(std::move(line));
  }
  /// The first of them.
  [[nodiscard]] std::vector<std::string> lines() const {
    const std::lock_guard lock{mutex_};
    return lines_;
  }
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock{mutex_};
    return count_;
  }

  /// Counts in the figures: happened("pods", "started").
  void happened(std::string_view part, std::string_view what, int times = 1) {
    const std::lock_guard lock{mutex_};
    figures_.at(part).as_object().at(what).as_int64() += times;
  }
  [[nodiscard]] boost::json::object figures() const {
    const std::lock_guard lock{mutex_};
    return figures_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
  std::size_t count_ = 0;
  boost::json::object figures_{
      // Starts were broken off by containerd's end.
      {"pods", {{"started", 0}, {"removed", 0}, {"startsBrokenOff", 0}}},
      {"containerd", {{"killed", 0}, {"stopped", 0}}},
      // alone: one that crossed the threshold. pairs: two at the same time, each of which would have crossed it alone.
      // near: one that came near it and went back: it has to stay. brief: one that went back as soon as it had crossed:
      // it may go or stay. answered: of those that had to go.
      {"crossings",
       {{"hadToBeAnswered", 0},
        {"answered", 0},
        {"alone", 0},
        {"pairs", 0},
        {"near", 0},
        {"brief", 0},
        {"briefEvicted", 0}}},
      // resumed: visits from the number known on. gaps: told to those who did not keep up, or came for the whole
      // history.
      // cutOff: who did not keep up.
      {"events", {{"visits", 0}, {"resumed", 0}, {"told", 0}, {"gaps", 0}, {"cutOff", 0}}}};
};

}  // namespace bench::soak
