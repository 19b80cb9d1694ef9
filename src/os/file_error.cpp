#include "os/file_error.hpp"

#include <fmt/format.h>

#include <system_error>

#include "core/printable.hpp"

namespace evictd::os {

std::string reason(int code) { return std::generic_category().message(code); }

FileError system_error(int code, std::string_view path) {
  const bool refused = code == EACCES || code == EPERM;
  return {Error{fmt::format("{}: {}{}", core::printable(path), reason(code),
                            refused ? "; run as root, or give evictd's user the right to it" : "")},
          code};
}

FileError content_error(std::string_view path, std::string_view what) {
  return {Error{fmt::format("{}: {}", core::printable(path), what)}, EBADMSG};
}

}  // namespace evictd::os
