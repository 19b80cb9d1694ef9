#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/registered_hooks.hpp"
#include "evict/kill_hooks.hpp"
#include "prekill/socket_hooks.hpp"

namespace evictd::app {

/// All that are asked before a pod is killed: the Varlink sockets of a directory, and the agents that called PreKill.
/// On the reactor; must be destroyed before the io_context.
class AllHooks final : public evict::KillHooks {
 public:
  /// `directory`: of the sockets (eviction.hooks.directory); "": none is looked at. Throws std::system_error where no
  /// thread can be had for it.
  AllHooks(const boost::asio::any_io_executor& reactor, const std::string& directory);

  [[nodiscard]] bool has_any() const override;
  [[nodiscard]] boost::asio::awaitable<void> ask(evict::KillIntent intent) override;

  /// Who knows those that call PreKill.
  [[nodiscard]] api::PreKillAgents& agents() { return agents_; }

 private:
  agent::RegisteredHooks agents_;
  std::optional<prekill::SocketHooks> sockets_;
};

}  // namespace evictd::app
