#pragma once
#include <string>

#include "os/file_descriptor.hpp"

namespace evictd::os {

/// Opens a directory below another one, for listing. `relative` may have several parts; none of them may be a symbolic
/// link (ELOOP or ENOTDIR), and nothing that is mounted on the way is opened or asked (EXDEV): its server may not
/// answer. Where the kernel cannot see to that (before Linux 5.6, or refused by a sandbox) mounts are crossed, and of
/// the parts only the last is looked at. Nothing where it failed, which errno tells.
[[nodiscard]] FileDescriptor open_beneath(int directory, const std::string& relative);

/// The same for those who remove what they find: where the kernel cannot see to it, nothing is opened (ENOSYS, or EPERM
/// of a sandbox).
[[nodiscard]] FileDescriptor open_only_beneath(int directory, const std::string& relative);

}  // namespace evictd::os
