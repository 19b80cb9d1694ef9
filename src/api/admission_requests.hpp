#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/departure.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "pods/trust.hpp"
#include "pods/verbose_status.hpp"

namespace evictd::v1 {
class AdmitRequest;
class AdmitBatchRequest;
class AdmitResponse;
}  // namespace evictd::v1

namespace evictd::api {

/// A container that is to be given other resources, as a client of the runtime tells it.
struct ContainerUpdate {
  std::string container_id;  ///< or its beginning
  pods::LinuxResources resources{};

  friend bool operator==(const ContainerUpdate&, const ContainerUpdate&) = default;
};

/// A pod of which it is asked whether it may run, or be resized.
struct AdmissionRequest {
  core::Pod pod;
  bool from_runtime = false;  ///< it is as a client of the runtime tells it: a better spec may be known
  std::string container{};    ///< the one that is to be made now; "": its sandbox, or with a whole pod all of them
  bool resize = false;        ///< it is there, and is to become this
  std::optional<ContainerUpdate> update{};  ///< of a resize, in place of the pod
  bool refused = false;                     ///< the update was admitted, and the runtime has refused it
};

/// Pods of one request: so many beside 110 others are decided in some 20 ms.
inline constexpr std::size_t most_admission_requests = 256;

/// The pods that a request asks about, at least one. An error is for the client, as INVALID_ARGUMENT. Big texts take
/// up to a second: not on the reactor. `memory_capacity`: the node's, in bytes, > 0. `trusted`: in which namespaces a
/// sandbox's annotated spec is believed as it is.
[[nodiscard]] Result<std::vector<AdmissionRequest>> read_admission_requests(const v1::AdmitRequest& request,
                                                                            std::int64_t memory_capacity,
                                                                            const pods::TrustedNamespaces& trusted);
[[nodiscard]] Result<std::vector<AdmissionRequest>> read_admission_requests(const v1::AdmitBatchRequest& request);

using AdmissionRequestsPtr = std::shared_ptr<const std::vector<AdmissionRequest>>;

/// Pods on their way to an answer, over several turns of the reactor. A task that goes before keep() takes back what it
/// has reserved. On the reactor.
class AdmissionTask {
 public:
  virtual ~AdmissionTask() = default;
  /// Decides about the next pods, at least one, and more for no longer than about half a millisecond: an answer for
  /// each, in their order. None: others have to make room for the next pod first, which when_room() tells. Not once all
  /// are answered. An error is FAILED_PRECONDITION, and ends the task.
  [[nodiscard]] virtual Result<std::vector<v1::AdmitResponse>> decide_some() = 0;
  /// Has `wake` called as soon as decide_some() is to be called again; perhaps at once, perhaps more than once. To be
  /// asked each time that there was no answer. A task that goes while its pod waits gives the room up.
  virtual void when_room(std::function<void()> wake) = 0;

  /// Whether others than the reactor have a part in the next pod, such as device plugins: that takes as long as they
  /// have.
  [[nodiscard]] virtual bool asks_others() const { return false; }
  /// Asks them what the next decision hangs on: before each decide_some(). `departure` is held meanwhile: of a client
  /// that has left nothing more is asked.
  [[nodiscard]] virtual boost::asio::awaitable<void> prepare(const Departure& /*departure*/) { co_return; }
  /// Has them do their part for those that were just decided, whose answers it completes, or turns into rejections
  /// where they fail: after each decide_some().
  [[nodiscard]] virtual boost::asio::awaitable<void> carry_out(std::vector<v1::AdmitResponse>& /*decided*/) {
    co_return;
  }

  /// Whether what pods were given has yet to be written, so that it outlives a restart.
  [[nodiscard]] virtual bool has_to_save() const { return false; }
  /// Waits until it is, for some seconds at most; where it fails, answers become rejections. `answers` are those of all
  /// pods. Once all are decided.
  [[nodiscard]] virtual boost::asio::awaitable<void> save(std::vector<v1::AdmitResponse>& /*answers*/) { co_return; }

  /// All are answered, and the client is there to hear of it.
  virtual void keep() {}
};

/// Answers Admit and AdmitBatch. On the reactor.
class Admitter {
 public:
  /// The node's, in bytes, > 0.
  [[nodiscard]] virtual std::int64_t memory_capacity() const = 0;
  /// In which namespaces a sandbox's annotated spec is believed as it is.
  [[nodiscard]] virtual pods::TrustedNamespaces trusted_namespaces() const { return pods::TrustedNamespaces{{}}; }
  /// Begins to decide about pods, each beside those before it that were admitted.
  [[nodiscard]] virtual std::unique_ptr<AdmissionTask> admit(AdmissionRequestsPtr pods, bool reserve) = 0;

 protected:
  ~Admitter() = default;
};

}  // namespace evictd::api
