#include "programs.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>

#include "fixture/places.hpp"
#include "os/file_descriptor.hpp"
#include "testbed/failure.hpp"
#include "testbed/programs.hpp"

namespace kubernetes {

namespace fs = std::filesystem;

namespace {

constexpr const char* variable = "EVICTD_KUBERNETES_PROGRAMS";

}  // namespace

fs::path program(const std::string& name) {
  const char* directory = std::getenv(variable);
  if (directory == nullptr) testbed::fail(fmt::format("{} is not set: see tools/kubernetes/build", variable));
  return fs::path(directory) / name;
}

fs::path image_program() { return fs::path(evictd::fixture::source_root) / "tools/deploy/image"; }

fs::path manifest_directory() { return fs::path(evictd::fixture::source_root) / "tools/deploy/kubernetes"; }

std::optional<std::string> missing_prerequisite() {
  if (std::getenv(variable) == nullptr) return fmt::format("{} is not set (tools/test --kubernetes sets it)", variable);
  for (const char* name : {"kube-apiserver", "kubelet"}) {
    if (!fs::exists(program(name))) return fmt::format("{} does not exist", program(name).native());
  }
  for (const char* name : {"etcd", "curl", "openssl", "unshare"}) {
    if (!testbed::find_program(name)) return fmt::format("{} is not installed", name);
  }
  return std::nullopt;
}

std::uint16_t free_port() {
  const evictd::os::FileDescriptor fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    testbed::fail_errno("a free port");
  return ntohs(address.sin_port);
}

}  // namespace kubernetes
