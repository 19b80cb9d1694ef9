#include "prekill/socket_list.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "api/temporary_directory.hpp"
#include "fixture/result.hpp"
#include "os/unix_address.hpp"
#include "testbed/fake_hook.hpp"

namespace evictd::prekill::socket_list_test {
namespace {

namespace fs = std::filesystem;
using fixture::error_of;
using fixture::value_of;
using test::TemporaryDirectory;
using testbed::FakeHook;

/// A socket at which nobody listens, as a process that was killed leaves it.
void leave_socket(const std::string& path) { REQUIRE(::mknod(path.c_str(), S_IFSOCK | 0600, 0) == 0); }

Result<os::FileDescriptor> connect_to(const std::string& directory, const std::string& name) {
  auto connections = connect_to_sockets(directory, {name});
  REQUIRE(connections.size() == 1);
  return std::move(connections.front());
}

}  // namespace

TEST_CASE("sockets right in the directory are hooks: no link, no file, no hidden one, no backup") {
  const TemporaryDirectory directory;
  for (const auto* name : {"b.sock", "a", ".hidden", "a~"}) leave_socket(directory / name);
  std::ofstream{directory / "file"} << "text";
  fs::create_directory(directory / "directory");
  fs::create_symlink("a", directory / "link");
  fs::create_symlink("gone", directory / "dead");
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  const auto found = value_of(list_sockets(directory.path().native()));
  CHECK(found.names == std::vector<std::string>{"a", "b.sock"});
  CHECK_FALSE(found.is_cut);
}

TEST_CASE("a directory that is not there has gone, and a file is none") {
  const TemporaryDirectory directory;
  const auto missing = list_sockets(directory / "missing");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().is_gone());
  std::ofstream{directory / "file"} << "text";
  const auto file = list_sockets(directory / "file");
  REQUIRE_FALSE(file.has_value());
  CHECK_FALSE(file.error().is_gone());
}

TEST_CASE("of many sockets, or among many entries, only so many are looked at") {
  const TemporaryDirectory sockets;
  for (std::size_t i = 0; i < most_sockets + 3; ++i) leave_socket(sockets / std::to_string(i));
  const auto some = value_of(list_sockets(sockets.path().native()));
  CHECK(some.names.size() == most_sockets);
  CHECK(some.is_cut);

  const TemporaryDirectory files;
  for (std::size_t i = 0; i < most_entries + 1; ++i) std::ofstream{files / std::to_string(i)};
  const auto none = value_of(list_sockets(files.path().native()));
  CHECK(none.names.empty());
  CHECK(none.is_cut);
}

TEST_CASE("one that listens is connected to, by the name of its socket alone") {
  const TemporaryDirectory directory;
  const FakeHook hook{directory / "hook", testbed::hook_does::hang};
  leave_socket(directory / "stale");
  std::ofstream{directory / "file"} << "text";
  fs::create_symlink("hook", directory / "link");
  const auto& path = directory.path().native();
  CHECK(connect_to(path, "hook").has_value());
  CHECK(error_of(connect_to(path, "stale")) == "Connection refused");
  CHECK(error_of(connect_to(path, "file")) == "it is no socket");
  CHECK(error_of(connect_to(path, "link")) == "it is no socket");
  CHECK(error_of(connect_to(path, "gone")) == "No such file or directory");
  CHECK(error_of(connect_to(directory / "missing", "hook")) == "No such file or directory");
}

TEST_CASE("a listener that takes no connections does not hold up anybody") {
  const TemporaryDirectory directory;
  const os::FileDescriptor listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto path = directory / "hook";
  REQUIRE(os::bind_to(listener.get(), path) == 0);
  REQUIRE(::listen(listener.get(), 0) == 0);
  std::vector<os::FileDescriptor> taken;
  std::string refused;
  for (int i = 0; i < 8 && refused.empty(); ++i) {
    auto connection = connect_to(directory.path().native(), "hook");
    if (connection)
      taken.push_back(*std::move(connection));
    else
      refused = connection.error().message;
  }
  CHECK(refused == "it takes no more connections");
}

}  // namespace evictd::prekill::socket_list_test
