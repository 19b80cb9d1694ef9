#include "agent/kept_allocations.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "admission/allocation/resource_allocator.hpp"
#include "admission/device_edits.hpp"
#include "async/run_until_either.hpp"
#include "async/sleep.hpp"

namespace asio = boost::asio;

namespace evictd::agent {
namespace {

std::size_t size_of_edits(const admission::PodAllocation& allocation) {
  std::size_t sum = 0;
  for (const auto& [container, given] : allocation)
    if (given.edits) sum += admission::size_of(*given.edits);
  return sum;
}

}  // namespace

/// How far the saves are, by their numbers from 1 on.
struct KeptAllocations::Writes {
  explicit Writes(const asio::any_io_executor& reactor) : changed{reactor, core::Instant::max()} {}

  void end(std::uint64_t number, const Result<void>& result) {
    if (result) {
      written = std::max(written, number);
    } else {
      failed = std::max(failed, number);
      error = result.error();
    }
    changed.cancel();
  }

  /// Returns once this save was written, or a later one that contains it, or it has failed and no later one is under
  /// way. Where this is cancelled, the next wait throws.
  static asio::awaitable<void> wait_for(std::shared_ptr<Writes> self, std::uint64_t number) {
    while (self->written < number && self->failed < self->begun) co_await async::wait(self->changed);
  }

  std::uint64_t begun = 0;
  std::uint64_t written = 0;  // all up to this one are
  std::uint64_t failed = 0;   // the last that has
  Error error{};              // of that one
  asio::steady_timer changed;
};

KeptAllocations::KeptAllocations(Parts parts, admission::Allocations kept, admission::Coming coming)
    : parts_{std::move(parts)},
      all_{std::move(kept)},
      coming_{std::move(coming)},
      writes_{std::make_shared<Writes>(parts_.reactor)} {}

admission::PodAllocation KeptAllocations::of(const std::string& uid) const {
  const auto found = all_.find(uid);
  return found == all_.end() ? admission::PodAllocation{} : found->second;
}

void KeptAllocations::give(const std::string& uid, const admission::PodAllocation& allocation,
                           std::optional<core::Instant> until) {
  bool is_promised_anew = false;
  if (allocation.empty()) {
    coming_.erase(uid);
  } else if (until) {
    const auto [promised, is_new] = coming_.try_emplace(uid, *until);
    is_promised_anew = !is_new && promised->second < *until && !listed_.contains(uid);
    promised->second = *until;
  }
  const auto held = all_.find(uid);
  const bool is_same = held == all_.end() ? allocation.empty() : held->second == allocation;
  if (is_same && !is_promised_anew) return;
  if (allocation.empty()) {
    all_.erase(held);
    listed_.erase(uid);
    saved_in_.erase(uid);
    save();
  } else {
    all_.insert_or_assign(uid, allocation);
    saved_in_.insert_or_assign(uid, save());
  }
}

Result<void> KeptAllocations::keep_edits(const std::string& uid, const admission::PodAllocation& allocation) {
  if (allocation.empty()) return {};
  const auto held = all_.find(uid);
  if (held == all_.end()) return fail("the pod, which has gone meanwhile");
  if (held->second == allocation) return {};
  auto bytes = size_of_edits(allocation);
  for (const auto& [other, allocated] : all_)
    if (other != uid) bytes += size_of_edits(allocated);
  if (bytes > most_edits)
    return fail("what device plugins say of the node's containers: " + std::to_string(bytes) + " bytes, at most " +
                std::to_string(most_edits) + " are kept");
  give(uid, allocation);
  return {};
}

void KeptAllocations::pods_changed(const core::PodList& pods) {
  std::vector<std::string> named;
  for (const auto& pod : pods) {
    coming_.erase(pod->uid);
    if (pod->uid == pod->key() || all_.contains(pod->uid)) continue;
    coming_.erase(pod->key());
    if (auto unnamed = all_.extract(pod->key())) {
      unnamed.key() = pod->uid;
      all_.insert(std::move(unnamed));
      named.push_back(pod->uid);
    }
  }
  std::erase_if(coming_, [now = parts_.clock.now()](const auto& entry) { return entry.second <= now; });
  const bool any_gone = admission::release_all_but(pods, all_, coming_);
  listed_.clear();
  for (const auto& pod : pods)
    if (all_.contains(pod->uid)) listed_.insert(pod->uid);
  if (!any_gone && named.empty()) return;
  std::erase_if(saved_in_, [this](const auto& entry) { return !all_.contains(entry.first); });
  const auto number = save();
  for (const auto& uid : named) saved_in_.insert_or_assign(uid, number);
}

std::uint64_t KeptAllocations::save() {
  const auto number = ++writes_->begun;
  parts_.node.save(all_, coming_, [weak = std::weak_ptr{writes_}, number](const Result<void>& result) {
    if (const auto writes = weak.lock()) writes->end(number, result);
  });
  return number;
}

bool KeptAllocations::is_written(const std::string& uid) const {
  const auto found = saved_in_.find(uid);
  return found == saved_in_.end() || found->second <= writes_->written;
}

asio::awaitable<Result<void>> KeptAllocations::written(std::vector<std::string> uids) {
  const auto writes = writes_;
  std::uint64_t needed = 0;
  for (const auto& uid : uids)
    if (const auto found = saved_in_.find(uid); found != saved_in_.end()) needed = std::max(needed, found->second);
  if (writes->written >= needed) co_return Result<void>{};
  if (writes->failed >= needed) needed = writes->begun > writes->failed ? writes->begun : save();
  auto end = Writes::wait_for(writes, needed);
  auto limit = parts_.clock.sleep(longest_write);
  co_await async::run_until_either(std::move(end), std::move(limit));
  if (writes->written >= needed) co_return Result<void>{};
  if (writes->failed >= needed) co_return fail(writes->error, "writing what the pod was given");
  co_return fail("writing what the pod was given, which took longer than " + core::to_string(longest_write));
}

}  // namespace evictd::agent
