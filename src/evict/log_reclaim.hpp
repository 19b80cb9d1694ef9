#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "async/worker.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "cri/client.hpp"
#include "cri/messages.hpp"

namespace evictd::evict {

struct LogReclaimerOptions {
  /// How long a pod must have been gone, from the first look that found nobody who knows it to the removal. A static
  /// pod whose manifest is being replaced, or a runtime that is being restarted, is back sooner.
  core::Duration gone_for = std::chrono::minutes(2);
  /// For how long a disk is waited for where nobody hurries. One that does not answer hangs its thread, not us.
  core::Duration patience = std::chrono::seconds(5);
  /// For how long one pod's logs are removed at a time: what is left waits for the next reclaim, and others' have a
  /// turn.
  core::Duration longest = std::chrono::seconds(30);
};

/// Removes what pods have logged that nobody will ask for: the log of a container that is about to be removed, and the
/// log directories of pods that are gone (kubelet: removeContainerLog, evictPodLogsDirectories). See evict/pod_logs.hpp
/// for what is never touched.
///
/// A pod is gone where the runtime has neither a sandbox nor a container of it, `IsKnown` does not know it, and both
/// was so at a look some time before and at all looks since.
///
/// For the reactor's thread; the disk is touched by the worker alone. The client must outlive it, and it must outlive
/// its coroutines.
class LogReclaimer {
 public:
  /// Whether anybody else than the runtime knows a pod of this uid, or may.
  using IsKnown = std::function<bool(std::string_view uid)>;

  /// `root`: the kubelet's podLogsDir. `worker`: not null.
  LogReclaimer(boost::asio::any_io_executor reactor, cri::Client& runtime, std::unique_ptr<async::Worker> worker,
               std::filesystem::path root, IsKnown is_known, LogReclaimerOptions options = {});
  LogReclaimer(const LogReclaimer&) = delete;
  LogReclaimer& operator=(const LogReclaimer&) = delete;

  /// Looks which pods are gone. To be called at the start and now and then; remove_gone() looks as well.
  [[nodiscard]] boost::asio::awaitable<Result<void>> look();

  /// Removes the log of a container that has ended and is about to be removed; its sandbox is among those given, or its
  /// log is left for remove_gone().
  [[nodiscard]] boost::asio::awaitable<Result<void>> remove_log_of(const cri::v1::Container& container,
                                                                   const cri::v1::ListPodSandboxResponse& sandboxes,
                                                                   core::Instant give_up);

  /// Removes the log directories of pods that are gone, until `give_up`. One line for each thing that failed, and few
  /// where all fails.
  [[nodiscard]] boost::asio::awaitable<std::vector<Error>> remove_gone(core::Instant give_up);

 private:
  template <class Work>
  boost::asio::awaitable<std::unique_ptr<std::invoke_result_t<Work>>> on_disk(Work work, core::Instant end);
  boost::asio::awaitable<Result<std::set<std::string, std::less<>>>> listed_pods();
  [[nodiscard]] Error no_answer() const;

  boost::asio::any_io_executor reactor_;
  cri::Client& runtime_;
  std::unique_ptr<async::Worker> worker_;
  std::filesystem::path root_;
  IsKnown is_known_;
  LogReclaimerOptions options_;
  std::map<std::string, core::Instant, std::less<>> gone_since_;  // by the directory's name
  int hanging_ = 0;                                               // work that was not waited for any longer
};

}  // namespace evictd::evict
