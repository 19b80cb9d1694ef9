#include "host/kernel_version.hpp"

#include <sys/utsname.h>

namespace evictd::host {

std::string kernel_version() {
  ::utsname names{};
  return ::uname(&names) == 0 ? names.release : "";
}

}  // namespace evictd::host
