#include "agent/node_shutdown.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>
#include <variant>

#include "agent/describe.hpp"
#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "core/duration.hpp"
#include "core/shutdown_plan.hpp"
#include "host/inhibitor_lock.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

using os::now;

host::LogindOptions needing(host::LogindOptions options, core::Duration total) {
  options.needed = total;
  return options;
}

std::string message_of(const core::TellShutdown& told, core::Duration total) {
  switch (told.phase) {
    case core::ShutdownPhase::Begun:
      return fmt::format("the node shuts down: it takes no pods, and those it has end within {}",
                         core::to_string(total));
    case core::ShutdownPhase::Resumed: return "the node still shuts down: going on where an earlier evictd was";
    case core::ShutdownPhase::Cancelled: return "the node does not shut down after all: it takes pods again";
    case core::ShutdownPhase::Ended: break;
  }
  if (!told.listed)
    return "the pods' time is over, and which there are was never known: the shutdown goes on without having ended any";
  if (told.left.empty()) return "all pods have ended: the shutdown goes on";
  std::string left;
  for (const auto& pod : told.left) left += (left.empty() ? "" : ", ") + pod->key();
  return fmt::format("the pods' time is over: the shutdown goes on with {} still there", left);
}

}  // namespace

NodeShutdown::NodeShutdown(asio::any_io_executor reactor, core::ShutdownGroups groups, host::LogindOptions logind,
                           host::InhibitorLock inherited, const std::string& state_file,
                           std::unique_ptr<ShutdownHooks> hooks)
    : NodeShutdown{std::move(reactor),
                   std::move(groups),
                   std::move(logind),
                   std::move(inherited),
                   host::ShutdownFile{state_file},
                   host::ShutdownFile{state_file}.load(),
                   std::move(hooks)} {}

NodeShutdown::NodeShutdown(asio::any_io_executor reactor, core::ShutdownGroups groups, host::LogindOptions logind,
                           host::InhibitorLock inherited, host::ShutdownFile file,
                           const host::ShutdownFile::Found& found, std::unique_ptr<ShutdownHooks> hooks)
    : reactor_{reactor},
      total_{core::total_grace_period(groups)},
      hooks_{std::move(hooks)},
      file_{std::move(file)},
      machine_{std::move(groups), found.progress},
      logind_{reactor, needing(std::move(logind), total_), std::move(inherited), *this},
      timer_{reactor},
      list_timer_{reactor} {
  if (!found.remark.empty()) os::log_warning("{}", found.remark);
}

NodeShutdown::~NodeShutdown() { self_->shutdown = nullptr; }

asio::awaitable<void> NodeShutdown::run() {
  if (!machine_.shutting_down()) hooks_->tell_cluster({});
  obey(machine_.start(now()));
  co_await logind_.run();
}

void NodeShutdown::stop() {
  stopping_ = true;
  logind_.stop();
  timer_.cancel();
  list_timer_.cancel();
}

void NodeShutdown::shutdown_pending(bool pending) { step(core::ShutdownPending{pending}); }

void NodeShutdown::logind_changed(const host::LogindStatus& status) {
  if (!status.error.empty()) return os::log_warning("node shutdown: {}", status.error);
  os::log_info("{}", status.holds_lock ? "a shutdown of the node waits for its pods" : "systemd-logind answers");
}

void NodeShutdown::step(const core::ShutdownEvent& event) {
  if (!stopping_) obey(machine_.step(event, now()));
}

void NodeShutdown::obey(const core::ShutdownActions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& known) { carry_out(known); }, action);
}

void NodeShutdown::carry_out(const core::ListPods&) {
  async::spawn(reactor_, list_pods(), "listing the pods of a shutdown");
}

/// Until the runtime can list the pods. What comes too late, the machine passes over.
asio::awaitable<void> NodeShutdown::list_pods() {
  constexpr auto pause = 200ms;
  std::string said;
  while (!stopping_ && machine_.waits_for_pods()) {
    const auto pods = co_await hooks_->list_pods();
    if (pods) {
      step(core::PodsListed{*pods});
      co_return;
    }
    if (said != pods.error().message) os::log_warning("node shutdown: {}", pods.error().message);
    said = pods.error().message;
    list_timer_.expires_after(pause);
    co_await async::wait(list_timer_);
  }
}

/// The machine is told later in any case: it is in the middle of a step now.
void NodeShutdown::carry_out(const core::EndPod& action) {
  os::log_info("node shutdown: ending {} within {}", action.pod->key(), core::to_string(action.grace_period));
  hooks_->end(action.pod, action.grace_period, [self = self_, reactor = reactor_, uid = action.pod->uid] {
    asio::post(reactor, [self, uid] {
      if (self->shutdown != nullptr) self->shutdown->step(core::PodEnded{uid});
    });
  });
}

void NodeShutdown::carry_out(const core::WakeMeAt& action) {
  timer_.cancel();
  if (!action.time) return;
  timer_.expires_at(*action.time);
  timer_.async_wait([self = self_](boost::system::error_code error) {
    if (!error && self->shutdown != nullptr) self->shutdown->step(core::TimePassed{});
  });
}

void NodeShutdown::carry_out(const core::TakeLock&) { logind_.take_lock(); }

void NodeShutdown::carry_out(const core::ReleaseLock&) { logind_.release_lock(); }

/// A shutdown goes on without it.
void NodeShutdown::carry_out(const core::KeepProgress& action) {
  const auto saved = file_.save(action.progress);
  const auto error = saved ? std::string() : saved.error().message;
  if (!error.empty() && error != file_error_) os::log_warning("runtimeDirectory: {}", error);
  file_error_ = error;
}

void NodeShutdown::carry_out(const core::TellShutdown& action) {
  v1::NodeShutdown detail;
  detail.set_phase(action.phase == core::ShutdownPhase::Cancelled ? "cancelled"
                   : action.phase == core::ShutdownPhase::Ended   ? "ended"
                                                                  : "begun");
  for (const auto& pod : action.left) *detail.add_left() = describe_pod(*pod);
  hooks_->tell(detail, message_of(action, total_));
  if (action.phase == core::ShutdownPhase::Ended) return;
  hooks_->tell_cluster({.pending = action.phase != core::ShutdownPhase::Cancelled, .begun = action.begun});
}

v1::ShutdownStatus NodeShutdown::status() const {
  const auto logind = logind_.status();
  v1::ShutdownStatus message;
  message.set_state(machine_.over()            ? "ended"
                    : machine_.shutting_down() ? "shutting down"
                    : logind.holds_lock        ? "ready"
                                               : "failed");
  message.set_error(logind.error.empty() ? file_error_ : logind.error);
  *message.mutable_inhibit_delay() = to_duration(logind.inhibit_delay);
  *message.mutable_grace_period() = to_duration(total_);
  return message;
}

}  // namespace evictd::agent
