#include "os/unix_address.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "api/temporary_directory.hpp"

namespace evictd::os::unix_address_test {
namespace {

FileDescriptor new_socket() { return FileDescriptor{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)}; }
FileDescriptor open_directory(const std::string& path) {
  return FileDescriptor{::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
}

TEST_CASE("a path has as many bytes as the kernel has room for, and no more") {
  const test::TemporaryDirectory directory;
  const auto path = directory / std::string(longest_socket_path - (directory / "").size(), 's');
  const auto listener = new_socket();
  CHECK(bind_to(listener.get(), path + "s") == ENAMETOOLONG);
  REQUIRE(bind_to(listener.get(), path) == 0);
  CHECK(bind_to(new_socket().get(), path) == EADDRINUSE);
  CHECK(connect_to(new_socket().get(), path + "s") == ENAMETOOLONG);
  CHECK(connect_to(new_socket().get(), path) == ECONNREFUSED);
  REQUIRE(::listen(listener.get(), 1) == 0);
  CHECK(connect_to(new_socket().get(), path) == 0);
  CHECK(connect_to(new_socket().get(), directory / "nobody") == ENOENT);
  CHECK(connect_to(new_socket().get(), "") == ENOENT);
  CHECK(bind_to(new_socket().get(), "") == ENOENT);
  CHECK(connect_to(-1, path) == EBADF);
}

TEST_CASE("a socket in a directory is connected to however long its path is, and nothing else is") {
  const test::TemporaryDirectory directory;
  const auto listener = new_socket();
  REQUIRE(bind_to(listener.get(), directory / "s") == 0);
  REQUIRE(::listen(listener.get(), 0) == 0);
  const auto deep = directory / std::string(200, 'd');
  std::filesystem::create_directory(deep);
  std::filesystem::rename(directory / "s", deep + "/s");
  std::filesystem::create_symlink("s", deep + "/link");
  std::ofstream(deep + "/file") << "no socket";
  const auto place = open_directory(deep);

  const auto why_not = [&](const char* name) { return connect_beneath(place.get(), name) ? 0 : errno; };
  for (const auto* other : {"link", "file", "."}) CHECK(why_not(other) == ENOTSOCK);
  CHECK(why_not("nobody") == ENOENT);

  std::vector<FileDescriptor> connections;
  for (auto next = connect_beneath(place.get(), "s"); next; next = connect_beneath(place.get(), "s"))
    connections.push_back(std::move(next));
  CHECK(why_not("s") == EAGAIN);  // nobody takes them
  CHECK_FALSE(connections.empty());
}

}  // namespace
}  // namespace evictd::os::unix_address_test
