#include "core/deciding_usage.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "core/eviction_order.hpp"
#include "core/signal.hpp"

namespace evictd::core {
namespace {

/// The victim is most likely among these. Each costs some 5 us, and twice as many seldom decide more.
constexpr std::size_t first_look = 8;
/// Beside an unlisted pod those that may go instead are among these.
constexpr std::size_t first_look_with_unlisted = 16;
/// Of the others so many are read until what is left cannot come first. Asking that costs little more than one of them.
constexpr std::size_t next_look = 64;
/// Of the largest so many are looked at once more, where one of them may have given much back meanwhile.
constexpr std::size_t last_look = 16;

class Deciding {
 public:
  Deciding(const PodList& pods, std::span<const Eligibility> eligibilities, const MemoryReadings& readings)
      : pods_{pods},
        eligibilities_{eligibilities},
        readings_{readings},
        usage_(pods.size()),
        has_unlisted_{std::ranges::find(eligibilities, Eligibility::unlisted) != eligibilities.end()} {}

  std::vector<std::optional<PodUsage>> run() {
    only_first_ = !has_unlisted_;
    read_held(readings_.always() + (has_unlisted_ ? first_look_with_unlisted : first_look));
    settle_first();
    while (!unread().empty() && !is_decided()) {
      read_held(rest_ && only_first_ ? next_look : unread().size());
      settle_first();
    }
    for (const auto place : unread()) usage_[place] = bound(place, *rest_);
    return settled();
  }

  std::vector<std::optional<PodUsage>> run_to(std::size_t count) {
    read_held(unread().size());
    lead(count);
    return settled();
  }

 private:
  struct Entry {
    RankedPod ranked;
    Eligibility eligibility;
    std::size_t place;
  };
  struct Counted {
    std::int64_t bytes;
    std::size_t place;
  };
  struct GoesLater {
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.eligibility != b.eligibility) return a.eligibility > b.eligibility;
      const auto order = compare(Signal::MemoryAvailable, a.ranked, b.ranked);
      return order != 0 ? order > 0 : a.place > b.place;
    }
  };

  [[nodiscard]] PodUsage bound(std::size_t place, std::int64_t bytes) const {
    return {.working_set = bytes, .at_most = true, .runs = readings_.runs(place)};
  }

  [[nodiscard]] std::span<const std::size_t> unread() const { return readings_.order().subspan(read_); }

  /// The list outlives this, so nothing of it is owned: to count a pod's owners takes as long as to rank it.
  [[nodiscard]] PodPtr pod(std::size_t place) const { return {PodPtr{}, pods_[place].get()}; }

  [[nodiscard]] Entry entry(std::size_t place, const std::optional<PodUsage>& usage) const {
    return {ranked(Signal::MemoryAvailable, pod(place), usage, {}), eligibilities_[place], place};
  }

  void read_held(std::size_t count) {
    for (const auto end = std::min(read_ + count, readings_.order().size()); read_ < end; ++read_) {
      const auto place = readings_.order()[read_];
      if (const auto held = readings_.held(place)) {
        usage_[place] = bound(place, *held);
        if (read_ >= readings_.always()) counted_.push_back({*held, place});
      }
      if (eligibilities_[place] != Eligibility::excluded && (!only_first_ || may_come_first(place, usage_[place])))
        offer(place);
    }
  }

  void offer(std::size_t place) {
    auto offered = entry(place, usage_[place]);
    if (!offered.ranked.nothing_to_gain) queue_.push(std::move(offered));
  }

  void read_working_set(std::size_t place) {
    const auto exact = readings_.working_set(place);
    usage_[place] = exact ? std::optional(PodUsage{.working_set = exact, .runs = readings_.runs(place)}) : std::nullopt;
  }

  /// Until the first of those that were read is one whose working set is known.
  void settle_first() {
    while (!queue_.empty() && queue_.top().ranked.at_most) {
      const auto place = queue_.top().place;
      queue_.pop();
      read_working_set(place);
      offer(place);
    }
  }

  /// Read behind the pods: what these have grown by since makes it too large. What they have given back since makes it
  /// too small, so that has to be little: see count_largest_again(). One that says much less than the pods in it does
  /// not count them (cgroup v1 without use_hierarchy).
  [[nodiscard]] std::optional<std::int64_t> rest_at_most() const {
    const auto together = readings_.held_together();
    const auto counted = std::accumulate(counted_.begin(), counted_.end(), std::int64_t{0},
                                         [](std::int64_t sum, const Counted& pod) { return sum + pod.bytes; });
    if (!together || *together < counted / 2) return std::nullopt;
    return std::max<std::int64_t>(0, *together - counted);
  }

  [[nodiscard]] bool rest_cannot_come_first() {
    rest_ = rest_at_most();
    return rest_ && !somebody_may_come_first(*rest_);
  }

  [[nodiscard]] bool is_decided() {
    if (!rest_cannot_come_first()) return false;
    if (counted_.size() <= first_look) return true;  // they were read a moment ago
    count_largest_again();
    return rest_cannot_come_first();
  }

  /// While others were read, one of the largest may have given much back: an earlier victim that ends, for one.
  void count_largest_again() {
    const auto end = counted_.begin() + static_cast<std::ptrdiff_t>(std::min(last_look, counted_.size()));
    std::ranges::nth_element(counted_, end, std::ranges::greater{}, &Counted::bytes);
    for (auto pod = counted_.begin(); pod != end; ++pod) pod->bytes = readings_.held(pod->place).value_or(0);
  }

  /// The first so many are those whose working set is known.
  void lead(std::size_t count) {
    for (; count > 0; --count) {
      settle_first();
      if (queue_.empty()) return;
      queue_.pop();
    }
  }

  /// Whether an unlisted pod goes depends on its own numbers and on those of the candidates that may go instead.
  std::vector<std::optional<PodUsage>> settled() {
    if (!has_unlisted_) return std::move(usage_);
    lead(first_look_with_unlisted);
    for (std::size_t place = 0; place < usage_.size(); ++place) {
      if (eligibilities_[place] != Eligibility::unlisted || !usage_[place] || !usage_[place]->at_most) continue;
      read_working_set(place);
    }
    return std::move(usage_);
  }

  [[nodiscard]] bool somebody_may_come_first(std::int64_t rest) const {
    return std::ranges::any_of(unread(), [&](std::size_t place) {
      return eligibilities_[place] != Eligibility::excluded && may_come_first(place, bound(place, rest));
    });
  }

  /// With this usage, before one whose working set is known. What the pod requests is added up only where it matters:
  /// that takes longer than all else here.
  [[nodiscard]] bool may_come_first(std::size_t place, const std::optional<PodUsage>& usage) const {
    if (queue_.empty() || queue_.top().ranked.at_most) return !entry(place, usage).ranked.nothing_to_gain;
    const auto comes_first = [&](const Entry& entry) {
      return !entry.ranked.nothing_to_gain && GoesLater{}(queue_.top(), entry);
    };
    const auto bytes = usage ? usage->working_set.value_or(0) : 0;
    const Entry without_request{
        {.pod = pod(place), .usage = bytes, .has_stats = usage.has_value()}, eligibilities_[place], place};
    return comes_first(without_request) && comes_first(entry(place, usage));
  }

  const PodList& pods_;
  std::span<const Eligibility> eligibilities_;
  const MemoryReadings& readings_;
  std::vector<std::optional<PodUsage>> usage_;
  bool has_unlisted_;
  bool only_first_ = false;           // who comes after it does not matter
  std::size_t read_ = 0;              // of the order
  std::vector<Counted> counted_;      // those that were read of what `held_together` counts
  std::optional<std::int64_t> rest_;  // rest_at_most() as it was last
  std::priority_queue<Entry, std::vector<Entry>, GoesLater> queue_;
};

}  // namespace

std::vector<std::optional<PodUsage>> read_deciding_usage(const PodList& pods,
                                                         std::span<const Eligibility> eligibilities,
                                                         const MemoryReadings& readings) {
  return Deciding{pods, eligibilities, readings}.run();
}

std::vector<std::optional<PodUsage>> read_leading_usage(const PodList& pods, std::span<const Eligibility> eligibilities,
                                                        const MemoryReadings& readings, std::size_t count) {
  return Deciding{pods, eligibilities, readings}.run_to(count);
}

}  // namespace evictd::core
