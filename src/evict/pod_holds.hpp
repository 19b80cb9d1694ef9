#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "async/worker.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "evict/protection.hpp"
#include "node/brake.hpp"
#include "node/cgroup.hpp"
#include "node/hold_notes.hpp"

namespace evictd::evict {

/// How a pod is kept from taking more memory before it is killed.
enum class HoldBy : std::uint8_t {
  brake,   ///< it runs on and may grow by a headroom (node/brake.hpp): it can end in order
  freeze,  ///< it stands still (node/freezer.hpp)
};

struct HoldRequest {
  std::string uid;     ///< the pod's
  std::string cgroup;  ///< the pod's own
  HoldBy by = HoldBy::brake;
  std::int64_t headroom = 0;  ///< bytes, for the brake
};

/// Holds pods. On the reactor, which it never blocks.
class PodHolder {
 public:
  PodHolder() = default;
  PodHolder(const PodHolder&) = delete;
  PodHolder& operator=(const PodHolder&) = delete;
  virtual ~PodHolder() = default;

  /// Error: the pod is not held, or not by `until`; then what comes of it later is undone. A frozen pod has no numbers.
  [[nodiscard]] virtual boost::asio::awaitable<Result<node::Brake>> hold(HoldRequest request, core::Instant until) = 0;
  /// A pod that has a brake may grow up to so many bytes from now on. Returns at once.
  virtual void widen(const std::string& uid, std::int64_t limit) = 0;
  /// The pod is held no longer. Returns at once; a pod that is not held is no error.
  virtual void let_go(const std::string& uid) = 0;
};

/// By files of the pods' cgroups, which a thread of its own writes: the kernel may reclaim memory meanwhile. A pod's
/// cgroup in which a process is that must never be hit (evictd, a runtime) is not held, nor one that is not below the
/// pods'. What is held when this goes is let go.
class PodHolds final : public PodHolder {
 public:
  /// The worker's thread may outlive this, with what it shares.
  struct Parts {
    std::shared_ptr<const node::CgroupHierarchy> hierarchy;
    std::string pods_cgroup;
    IsProtected is_protected;
    node::HoldNotes notes;
    std::unique_ptr<async::Worker> worker;
  };

  PodHolds(boost::asio::any_io_executor reactor, Parts parts);
  ~PodHolds() override;

  [[nodiscard]] boost::asio::awaitable<Result<node::Brake>> hold(HoldRequest request, core::Instant until) override;
  void widen(const std::string& uid, std::int64_t limit) override;
  void let_go(const std::string& uid) override;

 private:
  boost::asio::any_io_executor reactor_;
  Parts parts_;
  std::size_t under_way_ = 0;  // what the thread has still to do
  bool used_ = false;
};

}  // namespace evictd::evict
