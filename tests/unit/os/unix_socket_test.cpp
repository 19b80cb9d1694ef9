#include "os/unix_socket.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "api/temporary_directory.hpp"
#include "os/unix_address.hpp"

namespace evictd::os::unix_socket_test {
namespace {

using test::TemporaryDirectory;

/// A socket bound to a path, listening or not; the path stays when it is closed, as after a crash.
class BoundSocket {
 public:
  BoundSocket(const std::string& path, bool listening) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(os::bind_to(fd_, path) == 0);
    if (listening) REQUIRE(::listen(fd_, 1) == 0);
  }
  ~BoundSocket() { ::close(fd_); }
  BoundSocket(const BoundSocket&) = delete;
  BoundSocket& operator=(const BoundSocket&) = delete;

 private:
  int fd_;
};

/// Nobody's rights, where the tests run as root.
class Unprivileged {
 public:
  Unprivileged() {
    if (was_root_) REQUIRE(::seteuid(65534) == 0);
  }
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  bool was_root_ = ::geteuid() == 0;
};

std::string error_of(const Result<void>& result) { return result ? "" : result.error().message; }

TEST_CASE("a path where nothing is can be claimed, and nothing is left there") {
  const TemporaryDirectory directory;
  CHECK(error_of(claim_socket_path(directory / "s")) == "");
  CHECK_FALSE(std::filesystem::exists(directory / "s"));
}

TEST_CASE("a socket whose server died is removed") {
  const TemporaryDirectory directory;
  {
    const BoundSocket dead(directory / "s", true);
  }
  REQUIRE(std::filesystem::exists(directory / "s"));
  CHECK(error_of(claim_socket_path(directory / "s")) == "");
  CHECK_FALSE(std::filesystem::exists(directory / "s"));
}

TEST_CASE("a socket that somebody answers on is left alone") {
  const TemporaryDirectory directory;
  const auto path = directory / "s";
  const BoundSocket alive(path, true);
  // The second one finds the backlog full and must not wait for it.
  for (int attempt = 0; attempt < 4; ++attempt)
    CHECK(error_of(claim_socket_path(path)) ==
          path + ": somebody answers on it already (another evictd?): stop it, or choose another path");
  CHECK(std::filesystem::is_socket(path));
}

TEST_CASE("a file that is no socket is left alone") {
  const TemporaryDirectory directory;
  const auto path = directory / "s";
  std::ofstream(path) << "precious";
  CHECK(error_of(claim_socket_path(path)) == path + ": exists and is not a socket: remove it, or choose another path");
  CHECK(std::filesystem::file_size(path) == 8);
}

TEST_CASE("what keeps a socket from being bound is named") {
  const TemporaryDirectory directory;
  const auto missing = directory / "missing/s";
  CHECK(error_of(claim_socket_path(missing)) ==
        missing + ": the directory " + (directory / "missing") + " does not exist: create it");

  const std::string too_long = directory / std::string(200, 'x');
  CHECK(error_of(claim_socket_path(too_long)) ==
        too_long + ": a socket's path may have 107 bytes, this one has " + std::to_string(too_long.size()));

  CHECK(error_of(claim_socket_path("")) == "the path of the socket is empty");

  std::filesystem::permissions(directory.path(), std::filesystem::perms::none);
  {
    const Unprivileged nobody;
    CHECK(error_of(claim_socket_path(directory / "s")) ==
          (directory / "s") + ": Permission denied: evictd must be allowed to write to " + directory.path().string());
  }
  std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_all);
}

TEST_CASE("groups are found by name and by number") {
  CHECK(find_group("root").value() == 0);
  CHECK(find_group("12345").value() == 12345);
  CHECK(find_group("no-such-group-here").error().message ==
        "group \"no-such-group-here\": there is no such group on this machine: create it with groupadd --system");
  CHECK_FALSE(find_group("-1").has_value());
  CHECK_FALSE(find_group("12x").has_value());
}

TEST_CASE("a socket is given its group and its mode") {
  const TemporaryDirectory directory;
  const auto path = directory / "s";
  const BoundSocket socket(path, true);
  CHECK(error_of(admit_to_socket(path, std::to_string(::getegid()), 0620)) == "");
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0620);
  CHECK(status.st_gid == ::getegid());
  CHECK(error_of(admit_to_socket(directory / "gone", "", 0660)) ==
        (directory / "gone") + ": cannot set mode 0660: No such file or directory");
}

TEST_CASE("a server's own socket is closed to everybody at first, whatever the umask") {
  const TemporaryDirectory directory;
  const auto before = ::umask(0);
  const auto socket = ListeningSocket::open(directory / "s");
  CHECK(::umask(before) == 0);
  REQUIRE(socket.has_value());
  struct stat status{};
  REQUIRE(::stat((directory / "s").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0);
}

TEST_CASE("under a closed umask only the owner's own process can use what is created, and the mask comes back") {
  const TemporaryDirectory directory;
  const auto before = ::umask(022);
  {
    const ClosedUmask closed;
    const BoundSocket socket(directory / "s", true);
    struct stat status{};
    REQUIRE(::stat((directory / "s").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0);
  }
  CHECK(::umask(before) == 022);
}

}  // namespace
}  // namespace evictd::os::unix_socket_test
