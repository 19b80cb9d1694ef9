#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <vector>

#include "api/pre_kill_agents.hpp"
#include "evict/kill_hooks.hpp"

namespace evictd::agent {

/// Asks the agents that registered by PreKill. On the reactor; it may go while some are asked.
class RegisteredHooks final : public evict::KillHooks, public api::PreKillAgents {
 public:
  explicit RegisteredHooks(boost::asio::any_io_executor reactor);

  [[nodiscard]] bool has_any() const override;
  [[nodiscard]] boost::asio::awaitable<void> ask(evict::KillIntent intent) override;

  void add(std::shared_ptr<api::PreKillAgent> agent) override;
  void remove(const api::PreKillAgent& agent) override;
  [[nodiscard]] bool answered(const api::PreKillAgent& agent, const v1::PreKillDone& done) override;

 private:
  struct Table;
  class Question;

  boost::asio::any_io_executor reactor_;
  std::shared_ptr<Table> table_;  // coroutines share it
};

}  // namespace evictd::agent
