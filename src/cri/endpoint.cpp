#include "cri/endpoint.hpp"

#include <fmt/format.h>
#include <sys/un.h>

namespace evictd::cri {
namespace {

constexpr std::string_view scheme = "unix:";
constexpr std::size_t longest_path = sizeof(sockaddr_un::sun_path) - 1;

}  // namespace

Result<std::string> parse_endpoint(std::string_view text) {
  std::string_view path = text;
  if (path.starts_with(scheme)) path.remove_prefix(scheme.size());
  if (path.starts_with("///")) path.remove_prefix(2);

  if (!path.starts_with('/') || path.starts_with("//"))
    return fail(fmt::format("\"{}\" is not the endpoint of a local runtime; write unix:///PATH, for example {}", text,
                            default_endpoint));
  if (path.size() > longest_path)
    return fail(
        fmt::format("the socket path \"{}\" has {} bytes, more than the {} the system allows; use a shorter one", path,
                    path.size(), longest_path));
  return fmt::format("unix://{}", path);
}

}  // namespace evictd::cri
