#pragma once
#include <evictd.pb.h>

#include <memory>
#include <string>

namespace evictd::api {

/// One that registered by PreKill. On the reactor.
class PreKillAgent {
 public:
  PreKillAgent() = default;
  PreKillAgent(const PreKillAgent&) = delete;
  PreKillAgent& operator=(const PreKillAgent&) = delete;
  virtual ~PreKillAgent() = default;

  /// As it calls itself: printable, 1 to 64 bytes.
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Sends it, if the agent has read most of what it was sent before; waits for nothing. False: it has not.
  [[nodiscard]] virtual bool tell(std::shared_ptr<const v1::PreKillIntent> intent) = 0;
};

/// Knows those that registered, and asks them. All on the reactor.
class PreKillAgents {
 public:
  /// From now on it is asked, until it is removed.
  virtual void add(std::shared_ptr<PreKillAgent> agent) = 0;
  /// It has left. What it was asked counts as unanswered; nobody calls it any more.
  virtual void remove(const PreKillAgent& agent) = 0;
  /// It says so. False: nobody waits for that answer of it, or not any more.
  [[nodiscard]] virtual bool answered(const PreKillAgent& agent, const v1::PreKillDone& done) = 0;

 protected:
  ~PreKillAgents() = default;
};

}  // namespace evictd::api
