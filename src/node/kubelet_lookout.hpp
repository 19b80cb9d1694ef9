#pragma once
#include <boost/asio/awaitable.hpp>
#include <optional>

#include "core/duration.hpp"

namespace evictd::node {

/// Whether a kubelet runs here, which removes its pods' cgroups and volumes, and confines containers by its own
/// account. On the reactor.
class KubeletLookout {
 public:
  KubeletLookout() = default;
  KubeletLookout(const KubeletLookout&) = delete;
  KubeletLookout& operator=(const KubeletLookout&) = delete;
  virtual ~KubeletLookout() = default;

  /// Looked for anew each time. Nothing where that cannot be told in time.
  [[nodiscard]] virtual boost::asio::awaitable<std::optional<bool>> kubelet_runs(core::Instant give_up) = 0;
};

}  // namespace evictd::node
