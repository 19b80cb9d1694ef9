#include "agent/pod_admission_task.hpp"

#include <evictd.pb.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <iterator>
#include <ranges>
#include <string>
#include <utility>

#include "agent/describe_admission.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

/// Some pods' worth of deciding: a wake-up waits for no more.
constexpr auto longest_turn = 500us;

/// Who asks for a client of the runtime needs those of the container that is to be made; those of all might be more
/// than one message carries.
void leave_out_edits_of_others(v1::AdmitResponse& answer, const api::AdmissionRequest& asked) {
  if (!asked.from_runtime) return;
  for (auto& given : *answer.mutable_allocations())
    if (given.container() != asked.container) given.clear_edits();
}

}  // namespace

std::unique_ptr<api::AdmissionTask> PodAdmission::admit(api::AdmissionRequestsPtr asked, bool reserve) {
  return std::make_unique<Task>(*this, std::move(asked), reserve);
}

PodAdmission::Task::Task(PodAdmission& admission, api::AdmissionRequestsPtr asked, bool reserve)
    : admission_{admission}, alive_{admission.alive_}, asked_{std::move(asked)}, reserve_{reserve} {}

PodAdmission::Task::~Task() {
  if (alive_.expired()) return;
  wait_no_more();
  admission_.take_all_back(*this);
  for (const auto& resize : added_ | std::views::reverse) admission_.resizes_.take_back(resize);
}

bool PodAdmission::Task::asks_others() const {
  return asks_plugins() && !(*asked_)[next_].resize && admission_.parts_.pods.listed() &&
         wants_plugin_devices(*next_pod(), *admission_.parts_.plugins);
}

/// The reactor turns after each question, however soon it is answered: the pod is decided on anew each time.
asio::awaitable<void> PodAdmission::Task::prepare(const api::Departure& departure) {
  wishes_ = DeviceWishes{admission_.parts_.plugins};
  auto question = open_question();
  while (question && !departure.has_left()) {
    auto ids = co_await admission_.parts_.plugins->prefer(*question);
    wishes_.learn(*question, std::move(ids));
    co_await asio::post(admission_.parts_.reactor, asio::use_awaitable);
    question = open_question();
  }
}

std::optional<admission::DeviceQuestion> PodAdmission::Task::open_question() {
  if (!asks_others() || !may_go_on()) return std::nullopt;
  look();
  const auto pod = next_pod();
  static_cast<void>(admission_.admit(pod, operation_for(*pod), nullptr, *there_, node_, waiting_));
  return wishes_.take_open();
}

Result<std::vector<v1::AdmitResponse>> PodAdmission::Task::decide_some() {
  if (!admission_.parts_.pods.listed())
    return fail("nothing can be said yet: the container runtime has not told which pods there are; is it running?");
  std::vector<v1::AdmitResponse> answers;
  if (!may_go_on()) return answers;
  wait_no_more();
  look();
  const auto begun = os::now();
  do {
    auto answer = decide();
    if (!answer) break;
    leave_out_edits_of_others(*answer, (*asked_)[next_]);
    if (reserve_ && pod_ != nullptr && answer->admitted())
      admitted_.push_back({.place = next_, .pod = pod_, .preempted = preempted_});
    answers.push_back(*std::move(answer));
  } while (++next_ < asked_->size() && os::now() - begun < longest_turn && !asks_plugins());
  return answers;
}

std::optional<v1::AdmitResponse> PodAdmission::Task::decide() {
  const auto& asked = (*asked_)[next_];
  pod_ = nullptr;
  if (asked.resize) return admission_.resize(asked, reserve_ ? this : nullptr, *there_, node_);
  pod_ = next_pod();
  preempted_ = waiting_.victims;
  if (reserve_ && admission_.at_plugins_.contains(pod_->uid)) {
    waiting_.victims.clear();
    return admission_.refuse(*pod_, admission::Refusal::unexpected("another admission of the pod, which is under way"),
                             preempted_);
  }
  return admission_.admit(pod_, operation_for(*pod_), reserve_ ? this : nullptr, *there_, node_, waiting_);
}

void PodAdmission::Task::look() {
  if (there_ && !reserve_) return;
  there_ = admission_.occupancy(waiting_);
  node_ = admission_.parts_.node.snapshot();
  if (asks_plugins()) node_.plugins.preference = &wishes_;
}

void PodAdmission::Task::when_room(std::function<void()> wake) {
  waiting_.wake = std::move(wake);
  if (admission_.may_go_on(waiting_)) waiting_.wake();
}

void PodAdmission::Task::wait_no_more() {
  std::erase(admission_.waiting_, &waiting_);
  waiting_.pod = nullptr;
}

asio::awaitable<void> PodAdmission::Task::carry_out(std::vector<v1::AdmitResponse>& decided) {
  if (!asks_plugins() || pod_ == nullptr || decided.empty() || !decided.back().admitted()) co_return;
  const auto given = co_await admission_.give_devices(pod_, (*asked_)[next_ - 1]);
  auto& answer = decided.back();
  if (!given) {
    admission_.take_back(pod_->uid, *this);
    admitted_.pop_back();
    answer = admission_.refuse(*pod_, given.error(), preempted_);
    co_return;
  }
  answer.clear_allocations();
  for (const auto& [container, allocation] : *given)
    *answer.add_allocations() = describe_allocation(container, allocation);
  leave_out_edits_of_others(answer, (*asked_)[next_ - 1]);
}

std::vector<PodAdmission::Task::Admitted> PodAdmission::Task::unwritten() const {
  std::vector<Admitted> result;
  std::ranges::copy_if(admitted_, std::back_inserter(result),
                       [this](const auto& each) { return !admission_.kept_.is_written(each.pod->uid); });
  return result;
}

/// All wait for one write. Where it fails, pods stay admitted that an earlier one has.
asio::awaitable<void> PodAdmission::Task::save(std::vector<v1::AdmitResponse>& answers) {
  std::vector<std::string> uids;
  for (const auto& each : unwritten()) uids.push_back(each.pod->uid);
  const auto written = co_await admission_.kept_.written(std::move(uids));
  if (written || alive_.expired()) co_return;
  const auto refusal = admission::Refusal::unexpected(written.error().message);
  for (const auto& [place, pod, preempted] : unwritten()) {
    admission_.take_back(pod->uid, *this);
    answers[place] = admission_.refuse(*pod, refusal, preempted);
  }
}

void PodAdmission::Task::keep() {
  std::erase_if(admission_.tentative_, [this](const auto& entry) { return entry.second.task == this; });
  added_.clear();
}

}  // namespace evictd::agent
