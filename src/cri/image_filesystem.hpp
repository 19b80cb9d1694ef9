#pragma once
#include <boost/asio/awaitable.hpp>
#include <string>

#include "core/error.hpp"
#include "cri/client.hpp"

namespace evictd::cri {

/// Where the runtime keeps what takes space on the node's disks: directories, for statvfs(2) and to compare devices.
/// containerd tells the directory of its snapshotter, not a mount point.
struct ImageFilesystem {
  std::string images;
  std::string writable_layers;  ///< the same as `images` unless the runtime keeps the layers elsewhere

  friend bool operator==(const ImageFilesystem&, const ImageFilesystem&) = default;
};

/// Asks ImageFsInfo, once. The answer holds until the runtime is configured anew, that is, restarted. Of several image
/// file systems the first counts (kubelet: ImageFsStats). Fails while the runtime is absent, and if it names none.
[[nodiscard]] boost::asio::awaitable<Result<ImageFilesystem>> image_filesystem(Client& client);

}  // namespace evictd::cri
