#include "prekill/socket_directory.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "api/temporary_directory.hpp"
#include "cri/run.hpp"

namespace evictd::prekill::socket_directory_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::TemporaryDirectory;
using Names = std::vector<std::string>;

void leave_socket(const std::string& path) { REQUIRE(::mknod(path.c_str(), S_IFSOCK | 0600, 0) == 0); }

struct Looking {
  explicit Looking(std::string path)
      : directory{context.get_executor(), {.path = std::move(path), .interval = 50ms, .pause = 1ms}} {}
  [[nodiscard]] bool sees(const Names& names) {
    return test::run_until(context, [&] { return directory.names() == names; });
  }

  boost::asio::io_context context{1};
  SocketDirectory directory;
};

}  // namespace

TEST_CASE("sockets that come and go are known") {
  const TemporaryDirectory place;
  leave_socket(place / "a");
  Looking looking{place.path().native()};
  CHECK(looking.sees({"a"}));
  leave_socket(place / "b");
  CHECK(looking.sees({"a", "b"}));
  fs::remove(place / "a");
  CHECK(looking.sees({"b"}));
}

TEST_CASE("a directory that comes late is found, and one that is made anew as well") {
  const TemporaryDirectory place;
  Looking looking{place / "late"};
  CHECK(looking.sees({}));
  fs::create_directory(place / "late");
  leave_socket(place / "late/a");
  CHECK(looking.sees({"a"}));
  fs::remove_all(place / "late");
  CHECK(looking.sees({}));
  fs::create_directory(place / "late");
  leave_socket(place / "late/b");
  CHECK(looking.sees({"b"}));
}

TEST_CASE("another directory of the same name takes the place of the one that was moved away") {
  const TemporaryDirectory place;
  fs::create_directory(place / "hooks");
  leave_socket(place / "hooks/a");
  fs::create_directory(place / "next");
  leave_socket(place / "next/b");
  Looking looking{place / "hooks"};
  CHECK(looking.sees({"a"}));
  fs::rename(place / "hooks", place / "old");
  fs::rename(place / "next", place / "hooks");
  CHECK(looking.sees({"b"}));
}

}  // namespace evictd::prekill::socket_directory_test
