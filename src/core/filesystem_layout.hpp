#pragma once

namespace evictd::core {

/// Where images and writable layers lie. It selects what node-level reclaim may free and which bytes of a pod count
/// (kubelet-spec sections 2, 5 and 6).
struct FilesystemLayout {
  bool dedicated_imagefs = false;  ///< images (and layers) on another file system than the kubelet's root directory
  bool split = false;              ///< images on imagefs, writable layers on nodefs

  friend bool operator==(const FilesystemLayout&, const FilesystemLayout&) = default;
};

}  // namespace evictd::core
