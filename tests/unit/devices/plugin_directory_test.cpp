#include "devices/plugin_directory.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "api/temporary_directory.hpp"
#include "fixture/result.hpp"

namespace evictd::devices::plugin_directory_test {
namespace {

namespace fs = std::filesystem;

bool is_there(const std::string& path) { return fs::symlink_status(path).type() != fs::file_type::not_found; }

/// As a process that was killed leaves it.
void leave_socket(const std::string& path) {
  {
    const auto socket = fixture::value_of(os::ListeningSocket::open(path));
    fs::rename(path, path + ".aside");  // so that it is not removed
  }
  fs::rename(path + ".aside", path);
}

}  // namespace

TEST_CASE("sockets that plugins left are removed, and nothing else is; kubelet.sock is root's") {
  const test::TemporaryDirectory directory;
  leave_socket(directory / "gpu.sock");
  leave_socket(directory / "kubelet.sock");
  std::ofstream{directory / "kubelet_internal_checkpoint"} << "{}";
  fs::create_directory(directory / "own");
  fs::create_symlink("kubelet_internal_checkpoint", directory / "link");

  const auto socket = fixture::value_of(open_registration_socket(directory.path().native()));
  CHECK_FALSE(is_there(directory / "gpu.sock"));
  CHECK(is_there(directory / "kubelet_internal_checkpoint"));
  CHECK(is_there(directory / "own"));
  CHECK(is_there(directory / "link"));
  CHECK((fs::status(directory / "kubelet.sock").permissions() & fs::perms::all) ==
        (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("where somebody answers at kubelet.sock, nothing is removed") {
  const test::TemporaryDirectory directory;
  const auto other = fixture::value_of(open_registration_socket(directory.path().native()));
  leave_socket(directory / "gpu.sock");
  CHECK(fixture::error_of(open_registration_socket(directory.path().native())).find("answers on it already") !=
        std::string::npos);
  CHECK(is_there(directory / "gpu.sock"));
}

TEST_CASE("a directory that is missing is made, but not those above it") {
  const test::TemporaryDirectory above;
  CHECK(open_registration_socket(above / "device-plugins").has_value());
  CHECK_FALSE(open_registration_socket(above / "not/there").has_value());
}

TEST_CASE("a plugin is connected to by the name of its socket alone, not through a link") {
  const test::TemporaryDirectory directory;
  const test::TemporaryDirectory elsewhere;
  const auto near = fixture::value_of(os::ListeningSocket::open(directory / "gpu.sock"));
  const auto far = fixture::value_of(os::ListeningSocket::open(elsewhere / "far.sock"));
  fs::create_symlink(elsewhere / "far.sock", directory / "link.sock");
  std::ofstream{directory / "file"} << "text";
  fs::permissions(directory / "gpu.sock", fs::perms::owner_all);
  fs::permissions(elsewhere / "far.sock", fs::perms::owner_all);

  const auto connect = [&](const std::string& name) { return connect_to_plugin(directory.path().native(), name); };
  CHECK(connect("gpu.sock").has_value());
  CHECK(fixture::error_of(connect("link.sock")).ends_with("link.sock: is no socket"));
  CHECK(fixture::error_of(connect("file")).ends_with("file: is no socket"));
  CHECK(fixture::error_of(connect("gone")).ends_with("gone: No such file or directory"));
}

TEST_CASE("a socket's path may be longer than a socket's address") {
  const test::TemporaryDirectory directory;
  const auto socket = fixture::value_of(os::ListeningSocket::open(directory / "gpu.sock"));
  fs::permissions(directory / "gpu.sock", fs::perms::owner_all);
  const auto deep = directory / std::string(120, 'd');
  fs::create_directory(deep);
  fs::rename(directory / "gpu.sock", deep + "/gpu.sock");
  CHECK(connect_to_plugin(deep, "gpu.sock").has_value());
}

}  // namespace evictd::devices::plugin_directory_test
