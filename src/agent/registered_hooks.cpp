#include "agent/registered_hooks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "agent/describe.hpp"
#include "async/sleep.hpp"
#include "core/printable.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::agent {
namespace {

constexpr std::size_t longest_agent_error = 100;
/// Names are the pod's own, as its runtime has them; what Kubernetes allows is far shorter.
constexpr std::size_t longest_text = 1024;

std::string bounded_text(std::string_view text) {
  return std::string(core::beginning(core::printable(text.substr(0, longest_text)), longest_text));
}

std::shared_ptr<const v1::PreKillIntent> intent_message(const evict::KillIntent& intent) {
  auto message = std::make_shared<v1::PreKillIntent>();
  message->set_eviction_id(intent.id);
  const auto& pod = *intent.pod;
  message->mutable_pod()->set_namespace_(bounded_text(pod.name_space));
  message->mutable_pod()->set_name(bounded_text(pod.name));
  message->mutable_pod()->set_uid(bounded_text(pod.uid));
  message->set_message(bounded_text(intent.message));
  *message->mutable_deadline() = wall_time(intent.until);
  message->set_deadline_monotonic_ns(intent.until.time_since_epoch().count());
  // As it is, or not at all: something like it may be another one's.
  if (const auto& cgroup = intent.cgroup; core::printable(cgroup) == cgroup) message->set_cgroup(cgroup);
  return message;
}

}  // namespace

/// What agents were asked at one time.
class RegisteredHooks::Question {
 public:
  Question(const asio::any_io_executor& reactor, const evict::KillIntent& intent)
      : id_{intent.id}, asked_{os::now()}, timer_{reactor, intent.until}, answers_{intent.answers} {}

  [[nodiscard]] std::uint64_t id() const { return id_; }
  void ask(const api::PreKillAgent& agent) {
    open_.push_back({&agent, answers_->size()});
    answers_->push_back({.hook = agent.name(), .outcome = evict::outcome_late});
  }
  /// Whether an answer of this agent was waited for.
  bool settle(const api::PreKillAgent& agent, std::string outcome) {
    const auto found = std::ranges::find(open_, &agent, &Open::agent);
    if (found == open_.end()) return false;
    auto& answer = (*answers_)[found->place];
    answer.outcome = std::move(outcome);
    answer.took = os::now() - asked_;
    open_.erase(found);
    if (open_.empty()) timer_.cancel();
    return true;
  }
  /// Until all have answered, or the time is over.
  asio::awaitable<void> wait() {
    if (!open_.empty()) co_await async::wait(timer_);
  }

 private:
  struct Open {
    const api::PreKillAgent* agent;  // never followed
    std::size_t place;               // among the answers
  };

  std::uint64_t id_;
  core::Instant asked_;
  asio::steady_timer timer_;
  std::vector<Open> open_;
  std::shared_ptr<std::vector<evict::HookAnswer>> answers_;
};

struct RegisteredHooks::Table {
  std::vector<std::shared_ptr<api::PreKillAgent>> agents;
  std::vector<Question*> questions;  // in the order they were asked
};

RegisteredHooks::RegisteredHooks(asio::any_io_executor reactor)
    : reactor_{std::move(reactor)}, table_{std::make_shared<Table>()} {}

bool RegisteredHooks::has_any() const { return !table_->agents.empty(); }

asio::awaitable<void> RegisteredHooks::ask(evict::KillIntent intent) {
  /// Known for as long as somebody waits for its answers, however that ends.
  struct Known {
    Known(std::shared_ptr<Table> in, Question& of) : table{std::move(in)}, question{of} {
      table->questions.push_back(&question);
    }
    Known(const Known&) = delete;
    Known& operator=(const Known&) = delete;
    ~Known() { std::erase(table->questions, &question); }
    std::shared_ptr<Table> table;
    Question& question;
  };
  Question question{reactor_, intent};
  const Known known{table_, question};
  const auto message = intent_message(intent);
  const auto agents = table_->agents;
  for (const auto& agent : agents) question.ask(*agent);
  for (const auto& agent : agents)
    if (!agent->tell(message)) question.settle(*agent, "it has not read what it was asked before");
  co_await question.wait();
}

void RegisteredHooks::add(std::shared_ptr<api::PreKillAgent> agent) { table_->agents.push_back(std::move(agent)); }

void RegisteredHooks::remove(const api::PreKillAgent& agent) {
  std::erase_if(table_->agents, [&](const auto& known) { return known.get() == &agent; });
  for (auto* question : table_->questions) question->settle(agent, "it left without an answer");
}

bool RegisteredHooks::answered(const api::PreKillAgent& agent, const v1::PreKillDone& done) {
  const auto& error = done.error();
  const auto outcome = error.empty()
                           ? std::string(evict::outcome_done)
                           : fmt::format("it failed: {}", core::printable(core::beginning(error, longest_agent_error)));
  return std::ranges::any_of(table_->questions, [&](auto* question) {
    return question->id() == done.eviction_id() && question->settle(agent, outcome);
  });
}

}  // namespace evictd::agent
