#include "cri/image_filesystem.hpp"

#include <api.pb.h>

namespace evictd::cri {
namespace {

/// The first one's directory; empty if there is none.
std::string directory_of(const auto& filesystems) {
  return filesystems.empty() ? std::string{} : filesystems.Get(0).fs_id().mountpoint();
}

}  // namespace

boost::asio::awaitable<Result<ImageFilesystem>> image_filesystem(Client& client) {
  const auto info = co_await client.image_fs_info();
  if (!info) co_return fail(info.error().error, "cannot find the image file system");

  ImageFilesystem found{.images = directory_of(info->image_filesystems()),
                        .writable_layers = directory_of(info->container_filesystems())};
  if (found.images.empty())
    co_return fail(client.endpoint() + ": ImageFsInfo: the runtime does not say where its images are");
  if (found.writable_layers.empty()) found.writable_layers = found.images;
  co_return found;
}

}  // namespace evictd::cri
