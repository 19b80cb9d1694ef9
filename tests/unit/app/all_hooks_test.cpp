#include "app/all_hooks.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "api/temporary_directory.hpp"
#include "cri/run.hpp"
#include "fixture/patience.hpp"
#include "prekill/intent.hpp"
#include "testbed/fake_hook.hpp"

namespace evictd::app::all_hooks_test {
namespace {

namespace asio = boost::asio;
using Outcomes = std::map<std::string, std::string>;

/// Answers at the next turn.
class Agent final : public api::PreKillAgent {
 public:
  Agent(asio::io_context& context, api::PreKillAgents& agents) : context_{context}, agents_{agents} {}
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] bool tell(std::shared_ptr<const v1::PreKillIntent> intent) override {
    asio::post(context_, [this, intent] {
      v1::PreKillDone done;
      done.set_eviction_id(intent->eviction_id());
      CHECK(agents_.answered(*this, done));
    });
    return true;
  }

 private:
  asio::io_context& context_;
  api::PreKillAgents& agents_;
  std::string name_ = "agent";
};

Outcomes outcomes_of(asio::io_context& context, evict::KillHooks& hooks) {
  auto of = test::intent(test::patience);
  Outcomes outcomes;
  for (const auto& answer : test::answers(context, hooks, std::move(of))) outcomes[answer.hook] = answer.outcome;
  return outcomes;
}

}  // namespace

TEST_CASE("sockets and agents are asked together, and there may be only one kind of them or none") {
  const test::TemporaryDirectory directory;
  asio::io_context context{1};
  AllHooks hooks{context.get_executor(), directory.path().native()};
  CHECK_FALSE(hooks.has_any());
  CHECK(outcomes_of(context, hooks).empty());
  const auto agent = std::make_shared<Agent>(context, hooks.agents());
  hooks.agents().add(agent);
  CHECK(hooks.has_any());
  CHECK(outcomes_of(context, hooks) == Outcomes{{"agent", "done"}});
  const testbed::FakeHook hook{directory / "hook", testbed::hook_does::done};
  Outcomes outcomes;
  CHECK(test::run_until(context, [&] {
    outcomes = outcomes_of(context, hooks);
    return outcomes.size() == 2;
  }));
  CHECK(outcomes == Outcomes{{"agent", "done"}, {"hook", "done"}});
  hooks.agents().remove(*agent);
  CHECK(outcomes_of(context, hooks) == Outcomes{{"hook", "done"}});
}

TEST_CASE("without a directory only agents are asked") {
  asio::io_context context{1};
  AllHooks hooks{context.get_executor(), ""};
  const auto agent = std::make_shared<Agent>(context, hooks.agents());
  hooks.agents().add(agent);
  CHECK(outcomes_of(context, hooks) == Outcomes{{"agent", "done"}});
}

}  // namespace evictd::app::all_hooks_test
