#pragma once
#include <cerrno>
#include <expected>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace evictd::os {

/// An error of a file or directory, with the errno by which callers tell what has merely gone from what is wrong. Where
/// that does not matter it becomes a plain Error by itself: a FileResult<T> converts to a Result<T>.
struct FileError : Error {
  int code = 0;

  /// There is no such file, or the cgroup it belonged to was removed while it was open (the kernel answers ENODEV from
  /// then on).
  [[nodiscard]] bool is_gone() const { return code == ENOENT || code == ENODEV; }
  /// No descriptor is left, of the process or of the machine: it may be done once some are closed.
  [[nodiscard]] bool is_out_of_descriptors() const { return code == EMFILE || code == ENFILE; }
};

template <class T>
using FileResult = std::expected<T, FileError>;

/// The text of an errno, such as "No such file or directory".
[[nodiscard]] std::string reason(int code);

/// What the system answered about `path`, which may be any bytes: "PATH: No such file or directory"; a refusal also
/// says what to do.
[[nodiscard]] FileError system_error(int code, std::string_view path);

/// The file was read, but holds something else than it should (EBADMSG).
[[nodiscard]] FileError content_error(std::string_view path, std::string_view what);

}  // namespace evictd::os
