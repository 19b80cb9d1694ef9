#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "core/shutdown_machine.hpp"
#include "core/shutdown_plan.hpp"
#include "host/inhibitor_lock.hpp"
#include "host/logind.hpp"
#include "host/shutdown_file.hpp"
#include "kube/pod_objects.hpp"

namespace evictd::v1 {
class NodeShutdown;
class ShutdownStatus;
}  // namespace evictd::v1

namespace evictd::agent {

/// As the pod's status says it. (kubelet: nodeShutdownMessage)
inline constexpr std::string_view shutdown_message = "Pod was terminated in response to imminent node shutdown.";

/// The agent, as the shutdown needs it. All on the reactor.
class ShutdownHooks {
 public:
  virtual ~ShutdownHooks() = default;
  /// The pods of the node, listed anew; without the pod that evictd itself runs in. Error: they cannot be listed now,
  /// and it is asked again.
  virtual boost::asio::awaitable<Result<core::PodListPtr>> list_pods() = 0;
  /// Ends the pod: its containers may take so long. `done` is called once, when nothing of it is left or the end is not
  /// awaited for that any more; also at once, if it is not there.
  virtual void end(const core::PodPtr& pod, core::Duration grace_period, std::move_only_function<void()> done) = 0;
  /// For the event log: with the line for people.
  virtual void tell(const v1::NodeShutdown& detail, const std::string& message) = 0;
  /// For the cluster: at once where nothing of a shutdown is known, when one begins or is gone on with, and when it is
  /// called off. Waits for nobody.
  virtual void tell_cluster(const kube::NodeShutdown& shutdown) = 0;
};

/// Lets a shutdown of the node wait for its pods, and ends them in it. On the reactor.
class NodeShutdown final : private host::Logind::Listener {
 public:
  /// `groups`: not empty. `hooks`: not null.
  NodeShutdown(boost::asio::any_io_executor reactor, core::ShutdownGroups groups, host::LogindOptions logind,
               host::InhibitorLock inherited, const std::string& state_file, std::unique_ptr<ShutdownHooks> hooks);
  ~NodeShutdown();
  NodeShutdown(const NodeShutdown&) = delete;
  NodeShutdown& operator=(const NodeShutdown&) = delete;

  /// Until stop().
  [[nodiscard]] boost::asio::awaitable<void> run();
  /// The next evictd goes on with what was begun: the state is in the file.
  void stop();

  /// Whether the node takes no pods for this reason.
  [[nodiscard]] bool shutting_down() const { return machine_.shutting_down(); }
  [[nodiscard]] v1::ShutdownStatus status() const;

 private:
  /// What callbacks of others hold on to: they may come when this is gone.
  struct Self {
    NodeShutdown* shutdown;
  };

  NodeShutdown(boost::asio::any_io_executor reactor, core::ShutdownGroups groups, host::LogindOptions logind,
               host::InhibitorLock inherited, host::ShutdownFile file, const host::ShutdownFile::Found& found,
               std::unique_ptr<ShutdownHooks> hooks);
  void shutdown_pending(bool pending) override;
  void logind_changed(const host::LogindStatus& status) override;
  void step(const core::ShutdownEvent& event);
  void obey(const core::ShutdownActions& actions);
  void carry_out(const core::ListPods& action);
  void carry_out(const core::EndPod& action);
  void carry_out(const core::WakeMeAt& action);
  void carry_out(const core::TakeLock& action);
  void carry_out(const core::ReleaseLock& action);
  void carry_out(const core::KeepProgress& action);
  void carry_out(const core::TellShutdown& action);
  boost::asio::awaitable<void> list_pods();

  boost::asio::any_io_executor reactor_;
  core::Duration total_;
  std::unique_ptr<ShutdownHooks> hooks_;
  host::ShutdownFile file_;
  core::ShutdownMachine machine_;
  host::Logind logind_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer list_timer_;
  bool stopping_ = false;
  std::string file_error_;
  std::shared_ptr<Self> self_ = std::make_shared<Self>(Self{this});
};

}  // namespace evictd::agent
