#pragma once
#include <sys/types.h>

#include <string>

#include "core/error.hpp"

namespace evictd::api {

/// Makes the directory that `path` lies in, if only that is missing: /run is empty after a boot, and where systemd does
/// not make a socket's directory, we do.
[[nodiscard]] Result<void> make_directory_of(const std::string& path);

/// Makes sure that a server can listen on `path`: a socket left behind by a dead one is removed, one that somebody
/// answers on is an error, as is whatever else keeps a socket from being bound there. Nothing is left at `path` on
/// success.
[[nodiscard]] Result<void> claim_socket_path(const std::string& path);

/// The group named `group`, or numbered so.
[[nodiscard]] Result<gid_t> find_group(const std::string& group);

/// Hands a bound socket to those who may use it: first its group (empty: as it is), then its mode, so that it is never
/// open to the wrong ones.
[[nodiscard]] Result<void> admit_to_socket(const std::string& path, const std::string& group, mode_t mode);

/// What this process creates while this lives is closed to everybody else. The mask belongs to the whole process.
class ClosedUmask {
 public:
  ClosedUmask();
  ~ClosedUmask();
  ClosedUmask(const ClosedUmask&) = delete;
  ClosedUmask& operator=(const ClosedUmask&) = delete;

 private:
  mode_t previous_;
};

}  // namespace evictd::api
