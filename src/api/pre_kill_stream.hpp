#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>

#include "api/caller.hpp"
#include "api/handlers.hpp"
#include "api/pre_kill_agents.hpp"
#include "api/pre_kill_call.hpp"
#include "api/refusals.hpp"
#include "rpc/server/call_budget.hpp"
#include "rpc/server/open_calls.hpp"

namespace evictd::api {

struct PreKillLimits {
  std::size_t streams = 16;                       ///< at the same time; one more gets RESOURCE_EXHAUSTED
  std::size_t unread = 8;                         ///< intents that wait for one agent to read; it does not hear of more
  std::chrono::milliseconds first_message{5000};  ///< may take that long
  std::chrono::milliseconds write_timeout{5000};  ///< an intent may stay unread for that long
  /// After an answer that nobody waits for the next one is read that much later: a flood of them costs next to nothing.
  std::chrono::milliseconds rest{20};
  std::size_t longest_message = std::size_t{64} << 10;  ///< bytes, of an agent
};

class PreKillStreams;

/// A PreKill call on the reactor, from its arrival to its end.
class PreKillStream final : public PreKillAgent, public std::enable_shared_from_this<PreKillStream> {
 public:
  PreKillStream(PreKillStreams& streams, std::shared_ptr<PreKillCall> call, Caller caller);

  /// Waits for the first message.
  void begin();
  /// Ends it at once, within this, and lets go of the call: another part ends that.
  void close();

  void received(const v1::PreKillAnswer& answer);
  /// The write under way is over; not ok: the peer is gone.
  void written(bool ok);
  /// It says no more, was cancelled, or its connection is gone.
  void peer_left();

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] bool tell(PreKillCall::IntentPtr intent) override;

 private:
  void register_as(const v1::PreKillAnswer& answer);
  void send_next();
  void read_after_rest();
  void read_on();
  /// Has `is_over` called after that time, unless the timer is set anew or cancelled before.
  void watch(boost::asio::steady_timer& timer, std::chrono::milliseconds time, void (PreKillStream::*is_over)());
  void first_message_missing();
  void left_unread();
  void leave();
  void end(const grpc::Status& status);

  PreKillStreams& streams_;  // not once closed
  std::shared_ptr<PreKillCall> call_;
  Caller caller_;
  std::string name_;  // once registered
  bool closed_ = false;
  bool writing_ = false;
  std::deque<PreKillCall::IntentPtr> waiting_;  // to be written
  boost::asio::steady_timer read_timer_;        // the first message, then rests
  boost::asio::steady_timer write_timer_;
};

/// The PreKill calls of all ways in. On the reactor, but for `open`.
class PreKillStreams : public std::enable_shared_from_this<PreKillStreams> {
 public:
  /// What the handlers name must outlive this, or close().
  PreKillStreams(boost::asio::any_io_executor reactor, const Handlers& handlers, PreKillLimits limits = {});
  ~PreKillStreams() { close(); }
  PreKillStreams(const PreKillStreams&) = delete;
  PreKillStreams& operator=(const PreKillStreams&) = delete;

  /// Somebody called, who may or may not. On the queue's thread.
  void open(const std::shared_ptr<PreKillCall>& call, const std::shared_ptr<rpc::OpenCalls>& calls, Caller caller,
            rpc::CallBudget::Place place);

  /// Closes all and takes no more; their calls are ended by OpenCalls.
  void close();

 private:
  friend class PreKillStream;
  void begin(const std::shared_ptr<PreKillCall>& call, Caller caller);
  void audit(const Caller& caller, const grpc::Status& outcome, const std::string& name);

  boost::asio::any_io_executor reactor_;
  PreKillAgents* agents_;
  Auditor* auditor_;
  Refusals refusals_;
  PreKillLimits limits_;
  bool closed_ = false;
  std::unordered_set<std::shared_ptr<PreKillStream>> streams_;
};

}  // namespace evictd::api
