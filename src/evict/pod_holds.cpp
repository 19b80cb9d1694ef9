#include "evict/pod_holds.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "async/awaited.hpp"
#include "node/cgroup_processes.hpp"
#include "node/freezer.hpp"
#include "os/log.hpp"
#include "pods/cgroup_name.hpp"

namespace asio = boost::asio;

namespace evictd::evict {
namespace {

using Held = Result<node::Brake>;

/// On the thread.
Held hold_now(const node::CgroupHierarchy& hierarchy, const node::HoldNotes& notes, const IsProtected& is_protected,
              const HoldRequest& request) {
  auto processes = node::processes(hierarchy, request.cgroup);
  if (!processes) return std::unexpected(processes.error());
  const auto count = processes->size();
  remove_protected(*processes, is_protected);
  if (processes->size() != count) return fail("a process that the node needs is in the pod's cgroup");
  if (request.by == HoldBy::brake)
    return node::set_brake(hierarchy, notes, request.uid, request.cgroup, request.headroom);
  const auto frozen = node::freeze(hierarchy, notes, request.uid, request.cgroup);
  if (!frozen) return std::unexpected(frozen.error());
  return node::Brake{};
}

struct Attempt {
  Attempt(const asio::any_io_executor& reactor, core::Instant until) : awaited{reactor, until} {}

  std::optional<Held> result;  // the thread's until the reactor is told
  async::Awaited<Held> awaited;
  bool too_late = false;
};

}  // namespace

PodHolds::PodHolds(asio::any_io_executor reactor, Parts parts)
    : reactor_{std::move(reactor)}, parts_{std::move(parts)} {}

/// Where the thread is in the middle of something the notes stay: the next start, or "evictd disarm", looks again.
PodHolds::~PodHolds() {
  parts_.worker.reset();
  if (!used_) return;
  if (under_way_ == 0)
    node::lift_all_holds(*parts_.hierarchy, parts_.notes);
  else
    for (const auto& uid : parts_.notes.uids())
      if (const auto note = parts_.notes.read(uid); note && *note) {
        static_cast<void>(node::lift_hold(*parts_.hierarchy, parts_.notes, uid));
        static_cast<void>(parts_.notes.write(**note));
      }
}

asio::awaitable<Held> PodHolds::hold(HoldRequest request, core::Instant until) {
  if (!pods::is_below(request.cgroup, parts_.pods_cgroup)) co_return fail("the pod has no cgroup to itself");
  used_ = true;
  const auto attempt = std::make_shared<Attempt>(reactor_, until);
  const auto uid = request.uid;
  ++under_way_;
  parts_.worker->run(
      [attempt, hierarchy = parts_.hierarchy, notes = parts_.notes, is_protected = parts_.is_protected,
       request = std::move(request)] { attempt->result = hold_now(*hierarchy, notes, is_protected, request); },
      [this, attempt, uid] {
        --under_way_;
        const bool held = attempt->result->has_value();
        if (!attempt->too_late) return attempt->awaited.deliver(*std::move(attempt->result));
        if (held) let_go(uid);
      });
  auto held = co_await async::Awaited<Held>::wait(std::shared_ptr<async::Awaited<Held>>(attempt, &attempt->awaited));
  if (held) co_return *std::move(held);
  attempt->too_late = true;
  co_return fail("that takes too long");
}

void PodHolds::widen(const std::string& uid, std::int64_t limit) {
  ++under_way_;
  parts_.worker->run(
      [hierarchy = parts_.hierarchy, notes = parts_.notes, uid, limit] {
        if (const auto widened = node::widen_brake(*hierarchy, notes, uid, limit); !widened)
          os::log_warning("a pod's brake cannot be widened: {}", widened.error().message);
      },
      [this] { --under_way_; });
}

void PodHolds::let_go(const std::string& uid) {
  ++under_way_;
  parts_.worker->run(
      [hierarchy = parts_.hierarchy, notes = parts_.notes, uid] {
        if (const auto lifted = node::lift_hold(*hierarchy, notes, uid); !lifted)
          os::log_error(
              "a pod may still be held: {}; stop evictd: its unit then runs \"evictd disarm\", which lets it go",
              lifted.error().message);
      },
      [this] { --under_way_; });
}

}  // namespace evictd::evict
