#pragma once
#include <string>
#include <string_view>

#include "os/file_descriptor.hpp"

namespace evictd::os {

/// Whether it names something right in a directory, and leads nowhere else.
[[nodiscard]] bool is_one_name(std::string_view name);

/// Opens a directory below another one, for listing. `relative` may have several parts; none of them may be a symbolic
/// link (ELOOP or ENOTDIR), and nothing that is mounted on the way is opened or asked (EXDEV): its server may not
/// answer. Where the kernel cannot see to that (before Linux 5.6, or 5.8 where openat2 is refused) mounts are crossed,
/// and of the parts only the last is looked at. Nothing where it failed, which errno tells.
[[nodiscard]] FileDescriptor open_beneath(int directory, const std::string& relative);

/// The same for those who remove what they find: where the kernel cannot see to it, nothing is opened (ENOSYS).
[[nodiscard]] FileDescriptor open_only_beneath(int directory, const std::string& relative);

/// The same without openat2, which sandboxes refuse since they cannot look into its arguments (systemd:
/// RestrictSUIDSGID=): the others do it so then. Each part is asked before it is opened whether something is mounted
/// there (STATX_ATTR_MOUNT_ROOT, Linux 5.8; ENOSYS before that).
[[nodiscard]] FileDescriptor open_part_by_part(int directory, const std::string& relative);

}  // namespace evictd::os
