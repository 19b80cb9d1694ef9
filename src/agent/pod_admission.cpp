#include "agent/pod_admission.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "admission/plugin_capacity.hpp"
#include "admission/pod_allocation.hpp"
#include "agent/describe_admission.hpp"
#include "agent/pod_admission_task.hpp"
#include "agent/pod_devices.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "core/resize.hpp"
#include "os/log.hpp"
#include "pods/runtime_pod.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

/// Who was admitted starts its sandbox within seconds. One that is not there by then is not coming, and what it was
/// given is others' again. One that is there counts from then on by what is told of it, whatever of it has yet to come.
constexpr core::Duration reservation_lifetime = 5min;

/// A pod read from a file may have no uid yet: until it comes it goes by its name.
core::Pod with_uid(core::Pod pod) {
  if (pod.uid.empty()) pod.uid = pod.key();
  return pod;
}

/// Asked of each pod for each reservation: hardly ever is a name put together for it.
bool goes_by_name(const core::Pod& pod) {
  return pod.uid.size() == pod.name_space.size() + 1 + pod.name.size() && pod.uid == pod.key();
}

bool is_same(const core::Pod& a, const core::Pod& b) {
  return a.uid == b.uid || ((goes_by_name(a) || goes_by_name(b)) && a.key() == b.key());
}

core::PodPtr find_same(const core::PodList& pods, const core::Pod& pod) {
  const auto found = std::ranges::find_if(pods, [&pod](const auto& other) { return is_same(*other, pod); });
  return found == pods.end() ? nullptr : *found;
}

void leave_out(core::PodList& pods, const core::Pod& pod) {
  std::erase_if(pods, [&pod](const core::PodPtr& other) { return is_same(*other, pod); });
}

/// The last of a pod may stand for it until the next one starts (pods/current_containers.hpp): beside that it is none.
bool is_through(const pods::RuntimePodPtr& running, std::string_view name) {
  if (running == nullptr) return false;
  bool is_there = false;
  for (const auto& container : running->containers) {
    if (container.name != name) continue;
    if (container.state != pods::ContainerState::Exited) return false;
    is_there = true;
  }
  return is_there;
}

bool has_container(const core::Pod& pod, std::string_view name) {
  const auto is_meant = [name](const core::Container& container) { return container.name == name; };
  return std::ranges::any_of(pod.containers, is_meant) || std::ranges::any_of(pod.init_containers, is_meant);
}

/// What CreateContainer does not say: the containers that the pod has already. `running`: what the runtime says of
/// them; may be null.
core::PodPtr with_earlier_containers(const core::PodPtr& asked, const core::Pod& listed,
                                     const pods::RuntimePodPtr& running) {
  auto pod = *asked;
  for (const auto list : {&core::Pod::init_containers, &core::Pod::containers})
    for (const auto& container : listed.*list)
      if (!has_container(*asked, container.name) && !is_through(running, container.name))
        (pod.*list).push_back(container);
  return std::make_shared<const core::Pod>(std::move(pod));
}

/// Of what plugins gave, environments and paths of the host, a caller that only reads is told nothing.
void leave_out_edits(admission::PodAllocation& allocation) {
  for (auto& [container, given] : allocation) given.edits.reset();
}

}  // namespace

PodAdmission::PodAdmission(Parts parts, admission::Allocations allocations, admission::Coming coming)
    : parts_{std::move(parts)},
      kept_{{.reactor = parts_.reactor, .node = parts_.node, .clock = parts_.clock},
            std::move(allocations),
            std::move(coming)},
      preemptions_{
          {.reactor = parts_.reactor, .pods = parts_.pods, .evictions = parts_.evictions, .clock = parts_.clock},
          [this] { room_changed(); }} {
  parts_.pods.tell(*this);
}

std::optional<v1::AdmitResponse> PodAdmission::admit(const core::PodPtr& pod, admission::Operation operation,
                                                     const Task* reserving, Occupancy& there,
                                                     admission::NodeSnapshot& node, Waiting& waiting) {
  for (auto* pods : {&there.now, &there.pods}) {
    leave_out(*pods, *pod);
    for (const auto& victim : waiting.victims) leave_out(*pods, *victim);
  }
  node.allocations = there.allocations;
  admission::add_plugin_capacity(node);
  auto decision = parts_.chain.admit({.pod = *pod, .other_pods = there.pods, .node = node, .operation = operation});
  const bool admitted = decision.verdict.admitted;
  if (reserving != nullptr && admitted && !has_room(*pod, decision, there, node)) {
    wait_for_room(pod, decision.verdict, waiting);
    return std::nullopt;
  }
  if (reserving != nullptr) decision.verdict.preempted = std::exchange(waiting.victims, {});
  if (admitted) {
    for (const auto& victim : decision.verdict.preempted) std::erase(there.pods, victim);
    for (auto* pods : {&there.now, &there.pods}) pods->push_back(pod);
    there.allocations[pod->uid] = decision.verdict.allocation;
    if (reserving != nullptr) reserve(pod, decision.verdict.allocation, *reserving);
  } else if (reserving != nullptr) {
    parts_.recorder.admission_rejected(*pod, decision);
  }
  if (reserving == nullptr) leave_out_edits(decision.verdict.allocation);
  return describe(*pod, decision);
}

admission::Operation PodAdmission::operation_for(const core::Pod& pod, const api::AdmissionRequest& asked) const {
  using enum admission::Operation;
  if (!asked.from_runtime || asked.container.empty()) return Add;
  if (goes(pod.uid)) return Add;
  const auto listed = parts_.pods.find(pod.uid);
  const bool had_one = listed && std::ranges::any_of(listed->containers, [&](const pods::RuntimeContainer& container) {
                         return container.name == asked.container;
                       });
  return had_one ? Restart : Add;
}

/// It fits beside all that are there, those included that go for others, and beside all that wait. A container's update
/// is asked about only where the pod grows; a kubelet allocates less without a question, too.
v1::AdmitResponse PodAdmission::resize(const api::AdmissionRequest& asked, Task* reserving, Occupancy& there,
                                       admission::NodeSnapshot& node) {
  admission::Decision decision{.verdict = {}, .operation = admission::Operation::Resize};
  if (asked.refused) {
    if (reserving != nullptr) resizes_.refused(*asked.update);
    return describe({}, decision);
  }
  auto desired = asked.update ? updated_pod(*asked.update, there.now, parts_.pods) : with_uid(asked.pod);
  if (!desired) return describe({}, decision);
  const auto listed = find_same(there.now, *desired);
  if (listed) desired->uid = listed->uid;
  const auto told = find_same(*parts_.pods.pods(), *desired);  // perhaps with less than it counts with
  node.allocations = there.allocations;
  admission::add_plugin_capacity(node);
  const auto decide = [&](core::PodList others) {
    leave_out(others, *desired);
    return parts_.chain.admit({.pod = *desired,
                               .other_pods = others,
                               .node = node,
                               .operation = admission::Operation::Resize,
                               .allocated = listed.get()});
  };
  const bool is_question = !asked.update || requests_more(*listed, *desired);
  if (is_question) decision = decide(there.pods);
  if (is_question && decision.verdict.admitted && preemptions_.any_awaited()) decision = decide(there.now);
  if (!decision.verdict.admitted) {
    if (reserving != nullptr) parts_.recorder.admission_rejected(*desired, decision);
  } else if (listed) {
    for (auto* pods : {&there.now, &there.pods})
      for (auto& pod : *pods)
        if (pod->uid == desired->uid) pod = resized_pod(*pod, *desired);
    if (reserving != nullptr && (is_question || resizes_.contains(desired->uid)))
      reserving->added(resizes_.add(told ? told : listed, *desired, asked.update));
  }
  if (reserving == nullptr) leave_out_edits(decision.verdict.allocation);
  return describe(*desired, decision);
}

/// Nobody has to go, and who goes for others does not stand in the way. What it is given is the same by either list.
bool PodAdmission::has_room(const core::Pod& pod, const admission::Decision& decision, const Occupancy& there,
                            const admission::NodeSnapshot& node) const {
  if (!decision.verdict.preempted.empty()) return false;
  if (!preemptions_.any_awaited()) return true;
  const auto now =
      parts_.chain.admit({.pod = pod, .other_pods = there.now, .node = node, .operation = decision.operation});
  return now.verdict.admitted && now.verdict.preempted.empty();
}

void PodAdmission::wait_for_room(const core::PodPtr& pod, const admission::Verdict& verdict, Waiting& waiting) {
  waiting.pod = pod;
  waiting.allocation = verdict.allocation;
  waiting.changed = false;
  waiting.wake = nullptr;
  waiting.victims.insert(waiting.victims.end(), verdict.preempted.begin(), verdict.preempted.end());
  waiting_.push_back(&waiting);
  for (const auto& victim : verdict.preempted) preemptions_.begin(victim, !is_first_admission(victim->uid));
}

bool PodAdmission::may_go_on(const Waiting& waiting) const {
  return waiting.changed && std::ranges::none_of(waiting.victims, [this](const auto& victim) {
           return preemptions_.is_awaited(victim->uid);
         });
}

void PodAdmission::room_changed() {
  for (auto* waiting : waiting_) {
    waiting->changed = true;
    if (waiting->wake && may_go_on(*waiting)) waiting->wake();
  }
}

bool PodAdmission::is_first_admission(const std::string& uid) const {
  const auto found = tentative_.find(uid);
  return found != tentative_.end() && !found->second.reservation_before;
}

/// Where a call that is still under way has reserved the same for the pod, neither of the two takes it back.
void PodAdmission::reserve(const core::PodPtr& pod, const admission::PodAllocation& allocation, const Task& task) {
  const auto& id = pod->uid;
  Tentative before_it{.task = &task, .reservation_before = {}, .allocation_before = kept_.of(id)};
  if (const auto found = reservations_.find(id); found != reservations_.end())
    before_it.reservation_before = found->second;
  // One container that is made takes nothing from those that were admitted with it.
  const auto& reserved = before_it.reservation_before;
  const auto whole = reserved ? with_earlier_containers(pod, *reserved->pod, parts_.pods.find(id)) : pod;
  const auto until = parts_.clock.now() + reservation_lifetime;
  reservations_.insert_or_assign(id, Reservation{whole, until});
  const auto [earlier, is_new] = tentative_.try_emplace(id, std::move(before_it));
  if (!is_new && earlier->second.task != &task) tentative_.erase(earlier);
  preemptions_.forget(id);
  kept_.give(id, allocation, until);
}

void PodAdmission::take_back(const std::string& uid, const Task& task) {
  const auto found = tentative_.find(uid);
  if (found == tentative_.end() || found->second.task != &task) return;
  const auto tentative = tentative_.extract(found).mapped();
  if (!tentative.reservation_before) {
    reservations_.erase(uid);
    preemptions_.forget(uid);
  } else if (const auto reserved = reservations_.find(uid); reserved != reservations_.end()) {
    const bool seen = reserved->second.seen;
    reserved->second = *tentative.reservation_before;
    reserved->second.seen |= seen;
  }
  if (kept_.all().contains(uid)) kept_.give(uid, tentative.allocation_before);
}

void PodAdmission::take_all_back(const Task& task) {
  std::vector<std::string> uids;
  for (const auto& [uid, tentative] : tentative_)
    if (tentative.task == &task) uids.push_back(uid);
  for (const auto& uid : uids) take_back(uid, task);
}

asio::awaitable<std::expected<admission::PodAllocation, admission::Refusal>> PodAdmission::give_devices(
    core::PodPtr pod, const api::AdmissionRequest& asked) {
  auto& plugins = *parts_.plugins;
  auto allocation = kept_.of(pod->uid);
  at_plugins_.insert(pod->uid);
  auto given = co_await allocate_devices(plugins, pod, allocation);
  at_plugins_.erase(pod->uid);
  if (given) given = kept_.keep_edits(pod->uid, allocation);
  if (!given) co_return std::unexpected(admission::Refusal::unexpected(given.error().message));
  // Of a sandbox nothing starts yet.
  if (asked.from_runtime && asked.container.empty()) co_return allocation;
  const auto told = co_await pre_start_containers(plugins, asked.container, allocation);
  if (!told)
    co_return std::unexpected(
        admission::Refusal{.reason = "CreateContainerConfigError", .message = told.error().message});
  co_return allocation;
}

v1::AdmitResponse PodAdmission::refuse(const core::Pod& pod, const admission::Refusal& refusal,
                                       const core::PodList& preempted) const {
  constexpr std::string_view handler = "resources";  // of which allocating devices is a part
  admission::Decision decision{.verdict = admission::Verdict::reject(refusal.reason, refusal.message),
                               .handler = handler};
  decision.verdict.preempted = preempted;
  for (const auto name : parts_.chain.names()) {
    if (name == handler) break;
    decision.admitted_by.push_back(name);
  }
  parts_.recorder.admission_rejected(pod, decision);
  return describe(pod, decision);
}

void PodAdmission::pods_changed(const core::PodList& pods) {
  if (kept_.all().empty() && reservations_.empty() && resizes_.empty())
    return;  // as on most nodes; lists come between a wake-up and a kill
  forget_reservations(pods);
  resizes_.pods_changed(pods, [this](const std::string& uid) { return reservations_.contains(uid); });
  kept_.pods_changed(pods);
}

void PodAdmission::forget_reservations(const core::PodList& pods) {
  const auto now = parts_.clock.now();
  for (auto place = reservations_.begin(); place != reservations_.end();) {
    auto& reservation = place->second;
    const auto listed = find_same(pods, *reservation.pod);
    const bool is_there = listed && !parts_.evictions.has_ended(listed->uid);
    const bool is_done = is_there ? !as_admitted(*listed, reservation.pod) : reservation.seen;
    const bool is_late = reservation.until <= now;
    if (is_late && !is_there && !reservation.seen)
      os::log_warning("{} was admitted {} ago and never came: what it was given is free again", reservation.pod->key(),
                      core::to_string(reservation_lifetime));
    reservation.seen = is_there;
    place = is_done || is_late ? reservations_.erase(place) : std::next(place);
  }
}

core::PodPtr PodAdmission::as_admitted(const core::Pod& listed, const core::PodPtr& admitted) const {
  const auto whole = with_earlier_containers(admitted, listed, parts_.pods.find(listed.uid));
  auto pod = listed;
  return core::raise_to_admitted(pod, *whole) ? std::make_shared<const core::Pod>(std::move(pod)) : nullptr;
}

PodAdmission::Occupancy PodAdmission::occupancy(const Waiting& own) const {
  Occupancy result{.now = {}, .pods = {}, .allocations = kept_.all()};
  auto& now = result.now;
  for (const auto& pod : *parts_.pods.pods())
    if (!parts_.evictions.has_ended(pod->uid)) now.push_back(pod);
  for (const auto& [id, reservation] : reservations_) {
    if (reservation.until <= parts_.clock.now()) continue;
    const auto there = std::ranges::find_if(now, [&](const auto& pod) { return is_same(*pod, *reservation.pod); });
    if (there == now.end()) {
      if (!reservation.seen) now.push_back(reservation.pod);
    } else if (auto admitted = as_admitted(**there, reservation.pod)) {
      *there = std::move(admitted);
    }
  }
  resizes_.apply(now);
  std::ranges::copy_if(now, std::back_inserter(result.pods),
                       [this](const auto& pod) { return !preemptions_.is_awaited(pod->uid); });
  for (const auto* waiting : waiting_) {
    if (waiting == &own) continue;
    leave_out(result.pods, *waiting->pod);  // the runtime may have its sandbox already
    result.pods.push_back(waiting->pod);
    if (!waiting->allocation.empty()) result.allocations[waiting->pod->uid] = waiting->allocation;
  }
  return result;
}

bool PodAdmission::goes(const std::string& uid) const {
  return parts_.evictions.is_under_way(uid) || parts_.evictions.has_ended(uid);
}

/// Where a pod of the name runs it is that one, which keeps what it has for itself. A sandbox that the runtime is to
/// start is a pod of its own.
core::PodPtr PodAdmission::complete(const api::AdmissionRequest& asked) const {
  auto named = with_uid(asked.pod);
  const bool is_new = asked.from_runtime && asked.container.empty();
  if (goes_by_name(named) && !is_new)
    for (const auto& listed : *parts_.pods.pods())
      if (is_same(*listed, named) && !goes(listed->uid)) named.uid = listed->uid;
  const core::PodPtr pod = std::make_shared<const core::Pod>(std::move(named));
  if (!asked.from_runtime) return pod;
  auto completed = parts_.catalog.complete(pod);
  for (const auto& warning : parts_.catalog.take_warnings()) os::log_warning("{}", warning.message);
  const auto inferred = parts_.catalog.without_spec(pod);
  if (*completed != *inferred) return completed;
  const auto listed = find_same(*parts_.pods.pods(), *pod);
  return listed ? with_earlier_containers(inferred, *listed, parts_.pods.find(listed->uid)) : inferred;
}

v1::AdmitResponse PodAdmission::describe(const core::Pod& pod, const admission::Decision& decision) const {
  return describe_decision(pod, decision, parts_.chain.names(decision.operation));
}

}  // namespace evictd::agent
