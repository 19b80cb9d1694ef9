#include "agent/registered_hooks.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cri/run.hpp"
#include "fixture/patience.hpp"
#include "prekill/intent.hpp"

namespace evictd::agent::registered_hooks_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::intent;
using Intent = std::shared_ptr<const v1::PreKillIntent>;
using Outcomes = std::map<std::string, std::string>;

v1::PreKillDone done(std::uint64_t id, std::string error = "") {
  v1::PreKillDone done;
  done.set_eviction_id(id);
  done.set_error(std::move(error));
  return done;
}

/// Does in a turn of its own what the test says.
class Agent final : public api::PreKillAgent {
 public:
  using Does = std::function<void(const Agent& agent, const v1::PreKillIntent& intent)>;
  Agent(asio::io_context& context, std::string name, Does does, bool reads = true)
      : context_{context}, name_{std::move(name)}, does_{std::move(does)}, reads_{reads} {}

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] bool tell(Intent intent) override {
    if (!reads_) return false;
    asio::post(context_, [this, intent] {
      told.push_back(intent);
      if (does_) does_(*this, *intent);
    });
    return true;
  }
  std::vector<Intent> told;

 private:
  asio::io_context& context_;
  std::string name_;
  Does does_;
  bool reads_;
};

struct Asking {
  std::shared_ptr<Agent> add(std::string name, Agent::Does does = {}, bool reads = true) {
    auto agent = std::make_shared<Agent>(context, std::move(name), std::move(does), reads);
    hooks.add(agent);
    return agent;
  }
  [[nodiscard]] Outcomes ask(evict::KillIntent of) {
    Outcomes outcomes;
    for (const auto& answer : test::answers(context, hooks, std::move(of))) outcomes[answer.hook] = answer.outcome;
    return outcomes;
  }
  /// Answers what it is asked.
  Agent::Does answers(std::string error = "") {
    return [this, error](const Agent& agent, const v1::PreKillIntent& asked) {
      CHECK(hooks.answered(agent, done(asked.eviction_id(), error)));
    };
  }

  asio::io_context context{1};
  RegisteredHooks hooks{context.get_executor()};
};

}  // namespace

TEST_CASE("without an agent there is nobody to ask") {
  Asking asking;
  CHECK_FALSE(asking.hooks.has_any());
  CHECK(asking.ask(intent(1s)).empty());
}

TEST_CASE("an agent hears of the pod, why it goes and until when, and its answer is told") {
  Asking asking;
  const auto agent = asking.add("dumper", asking.answers());
  CHECK(asking.hooks.has_any());
  const auto of = intent(test::patience);
  CHECK(asking.ask(of) == Outcomes{{"dumper", "done"}});
  REQUIRE(agent->told.size() == 1);
  const auto& told = *agent->told.front();
  CHECK(told.eviction_id() == 7);
  CHECK(told.pod().namespace_() == "default");
  CHECK(told.pod().name() == "web");
  CHECK(told.pod().uid() == "u1");
  CHECK(told.message() == "memory is short");
  CHECK(told.cgroup() == "/kubepods/pod1");
  CHECK(told.deadline_monotonic_ns() == of.until.time_since_epoch().count());
  CHECK(told.deadline().seconds() > 0);
}

TEST_CASE("what a pod is called cannot write more than a line of text") {
  Asking asking;
  const auto agent = asking.add("dumper", asking.answers());
  auto of = intent(test::patience, "/kubepods/\xff");
  auto pod = *of.pod;
  pod.name = "a\n\xff" + std::string(10'000, 'x');
  of.pod = std::make_shared<const core::Pod>(std::move(pod));
  CHECK(asking.ask(of) == Outcomes{{"dumper", "done"}});
  CHECK(agent->told.front()->pod().name().starts_with("a\\n\\xff"));
  CHECK(agent->told.front()->pod().name().size() <= 1024);
  CHECK(agent->told.front()->cgroup().empty());
}

TEST_CASE("agents are waited for side by side: who does not answer, does not read, fails or leaves holds up nobody") {
  Asking asking;
  const auto good = asking.add("good", asking.answers());
  const auto silent = asking.add("silent");
  const auto deaf = asking.add("deaf", {}, false);
  const auto fails = asking.add("fails", asking.answers("no\nroom"));
  const auto leaves =
      asking.add("leaves", [&](const Agent& agent, const v1::PreKillIntent&) { asking.hooks.remove(agent); });
  CHECK(asking.ask(intent(1s)) == Outcomes{{"good", "done"},
                                           {"silent", "no answer in time"},
                                           {"deaf", "it has not read what it was asked before"},
                                           {"fails", "it failed: no\\nroom"},
                                           {"leaves", "it left without an answer"}});
  asking.hooks.remove(*silent);
  CHECK(asking.ask(intent(test::patience)).size() == 3);
}

TEST_CASE("an answer to what was not asked, or that comes twice or too late, is none") {
  Asking asking;
  bool other = true;
  bool twice = true;
  const auto agent = asking.add("dumper", [&](const Agent& self, const v1::PreKillIntent& asked) {
    other = asking.hooks.answered(self, done(asked.eviction_id() + 1));
    CHECK(asking.hooks.answered(self, done(asked.eviction_id())));
    twice = asking.hooks.answered(self, done(asked.eviction_id()));
  });
  CHECK_FALSE(asking.hooks.answered(*agent, done(7)));
  CHECK(asking.ask(intent(test::patience)) == Outcomes{{"dumper", "done"}});
  CHECK_FALSE(other);
  CHECK_FALSE(twice);
  CHECK_FALSE(asking.hooks.answered(*agent, done(7)));
}

TEST_CASE("two evictions are asked about at the same time, each answer for its own") {
  Asking asking;
  std::vector<std::uint64_t> asked;
  const auto agent = asking.add("dumper", [&](const Agent& self, const v1::PreKillIntent& of) {
    asked.push_back(of.eviction_id());
    if (asked.size() < 2) return;
    CHECK(asking.hooks.answered(self, done(8, "eight")));
    CHECK(asking.hooks.answered(self, done(7)));
  });
  std::map<std::uint64_t, std::string> outcomes;
  for (const std::uint64_t id : {7, 8}) {
    const auto of = intent(test::patience, "/a", id);
    asio::co_spawn(asking.context, asking.hooks.ask(of), [&outcomes, of](const std::exception_ptr&) {
      if (!of.answers->empty()) outcomes[of.id] = of.answers->front().outcome;
    });
  }
  CHECK(test::run_until(asking.context, [&] { return outcomes.size() == 2; }));
  CHECK(outcomes[7] == "done");
  CHECK(outcomes[8] == "it failed: eight");
}

}  // namespace evictd::agent::registered_hooks_test
