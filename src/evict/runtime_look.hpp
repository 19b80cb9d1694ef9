#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "cri/client.hpp"

namespace evictd::evict {

/// What the runtime lists, so far as the end of an eviction depends on it.
struct RuntimeView {
  std::unordered_map<std::string, std::string> running;                  ///< sandbox id -> name of a running container
  std::unordered_set<std::string> sandboxes;                             ///< ids of all, also of those that are stopped
  std::unordered_set<std::string> ready;                                 ///< ids of those that are not
  std::unordered_map<std::string, std::vector<std::string>> by_pod_uid;  ///< pod uid -> ids of its sandboxes

  [[nodiscard]] static RuntimeView of(const cri::v1::ListContainersResponse& containers,
                                      const cri::v1::ListPodSandboxResponse& sandboxes);
};

/// Looks at the runtime for all evictions together. Each wants to know whether its pod is gone, and a full list is all
/// that CRI has to answer with; when a node shuts down a hundred of them ask at once.
class RuntimeLook {
 public:
  /// Between the beginnings of two looks: 20 in a second, however many ask. The first is at once.
  static constexpr core::Duration interval = std::chrono::milliseconds(50);

  using Answer = Result<std::shared_ptr<const RuntimeView>>;

  /// `runtime` outlives this, and this outlives its callers.
  RuntimeLook(boost::asio::any_io_executor reactor, cri::Client& runtime);

  /// The answer of a look that began at `since` or later: of one that is done or under way where there is such, else of
  /// the next. Error: a call failed. On the reactor.
  [[nodiscard]] boost::asio::awaitable<Answer> since(core::Instant since);

 private:
  boost::asio::awaitable<void> look();
  boost::asio::awaitable<Answer> ask();

  boost::asio::any_io_executor reactor_;
  cri::Client& runtime_;
  boost::asio::steady_timer ended_;  // never expires: cancelled whenever a look ends
  bool looking_ = false;
  core::Instant begun_{};     // of the last look
  core::Instant answered_{};  // when the look began that answer_ is of
  Answer answer_ = fail("the runtime was not asked yet");
};

}  // namespace evictd::evict
