#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/signal.hpp"
#include "node/signal_reader.hpp"

namespace evictd::test {

/// files.available: how many files may still be opened on the machine. All that a new signal takes: this row, and the
/// reader below it.
inline const core::Signal files_available = core::define_signal(
    {.name = "files.available",
     .resource = "open-files",
     .unit = "files",
     .condition = core::NodeCondition::PidPressure,
     .rank_by = core::RankBy::Processes,
     .pace = {.rate = 100'000, .fastest = 1'000'000, .shortest = std::chrono::milliseconds(10), .step = 16}});

/// Reads /proc/sys/fs/file-nr: opened, free, the most.
class OpenFiles final : public node::SignalReader {
 public:
  explicit OpenFiles(std::filesystem::path file_nr) : file_nr_{std::move(file_nr)} {}

  [[nodiscard]] std::span<const core::Signal> signals() const override { return {&files_available, 1}; }

  [[nodiscard]] std::vector<Error> observe(core::Observations& observations, core::Instant now) override {
    observations[files_available].reset();
    const auto counts = read();
    if (!counts) return {Error{file_nr_.native() + ": has no numbers"}};
    const auto [opened, most] = *counts;
    observations[files_available] = core::Observation{.available = most - opened, .capacity = most, .time = now};
    return {};
  }

  [[nodiscard]] std::optional<std::int64_t> available(core::Signal /*signal*/) const override {
    const auto counts = read();
    return counts ? std::optional{counts->second - counts->first} : std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<std::pair<std::int64_t, std::int64_t>> read() const {
    std::ifstream file{file_nr_};
    std::int64_t opened = 0;
    std::int64_t unused = 0;
    std::int64_t most = 0;
    if (!(file >> opened >> unused >> most)) return std::nullopt;
    return std::pair{opened, most};
  }

  std::filesystem::path file_nr_;
};

}  // namespace evictd::test
