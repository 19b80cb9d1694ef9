#pragma once
#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "agent/decision_log.hpp"
#include "agent/disk_wakes.hpp"
#include "core/action.hpp"
#include "core/duration.hpp"
#include "node/node_memory.hpp"
#include "wake/deadline.hpp"
#include "wake/fallback_timer.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::agent {

/// Whether no source fired, and nothing but the fallback timer began the pass.
[[nodiscard]] bool is_by_the_clock(const wake::Wake& wake);

/// What wakes the loop: it owns what the sources are armed by, and arms them after every reading of the node. On the
/// reactor.
class Alarms {
 public:
  /// All of these must outlive this.
  struct Parts {
    wake::Wakes& wakes;
    wake::Deadline& deadline;
    wake::FallbackTimer& fallback;
    const std::vector<std::unique_ptr<wake::Source>>& sources;  ///< all, these two among them
    DiskWakes* disks = nullptr;                                 ///< null: no disk is read
  };

  explicit Alarms(Parts parts) : parts_{parts} {}

  /// Has what is wrong with a source recorded, also what was before.
  void report_to(DecisionLog& log);

  /// Begins a pass as soon as the loop is free.
  void notify(wake::Reason reason) { parts_.wakes.notify(std::move(reason)); }
  /// Waits for the next reason and takes all there are.
  [[nodiscard]] boost::asio::awaitable<wake::Wake> next() { return parts_.wakes.next(); }

  /// Begins a pass at that time; replaces the time before; absent: none.
  void wake_at(std::optional<core::Instant> time) { parts_.deadline.set(time); }
  /// A threshold was crossed: what only the fallback timer saw, every notifier missed.
  void crossed(const wake::Wake& wake);
  /// A pass is over that this woke: the disks are read for it, beside the loop.
  void passed(const wake::Wake& wake);

  /// What came of the pass, as wake::Arming has it.
  struct Outcome {
    bool releasing = false;
    bool nobody_goes = false;
  };
  /// Arms all sources by the levels that the state machine asked for, as they lie by this reading.
  void arm(std::span<const core::Level> levels, const node::NodeMemoryReading& reading, Outcome outcome,
           core::Instant now);
  /// From now on these pods' files are watched; never null.
  void watch_files(std::shared_ptr<const wake::WatchedPods> pods);
  /// From the next arm() on this directory stands for the image file system.
  void watch_images(std::filesystem::path directory) { arming_.images = std::move(directory); }

  [[nodiscard]] bool watches_images() const { return !arming_.images.empty(); }
  [[nodiscard]] const std::vector<std::unique_ptr<wake::Source>>& sources() const { return parts_.sources; }

 private:
  void arm_sources() const;

  Parts parts_;
  wake::Arming arming_;
};

}  // namespace evictd::agent
