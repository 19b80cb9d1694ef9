#include "evict/pod_logs.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "fixture/mount.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "os/now.hpp"
#include "support/skip.hpp"

namespace evictd::evict::pod_logs_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Mount;
using fixture::Tree;
using fixture::value_of;

using Names = std::vector<std::string>;

const std::string pod = "shop_web_u1";

/// A node with the logs of one pod, and something beside them that is nobody's log.
struct Logs {
  Tree tree{{dir("pods", {dir(pod, {dir("main", {file("0.log", "old"), file("0.log.20260101-000000", "older"),
                                                 file("0.log.20251231-000000.gz", "oldest"), file("1.log", "new"),
                                                 file("10.log", "newer"), file("0.logs", "another's")})})}),
             dir("other", {file("0.log", "precious"), file("keep", "precious")})}};
  fs::path root = tree.path("pods");

  [[nodiscard]] bool has(const std::string& path) const { return fs::exists(fs::symlink_status(tree.path(path))); }
  [[nodiscard]] Removed remove(const std::string& container = "main") const {
    return remove_log(root, {.directory = pod + "/" + container, .name = "0.log"});
  }
  [[nodiscard]] Removed remove_all(const std::string& name = pod) const {
    return remove_log_directory(root, name, os::now() + 1min);
  }
  [[nodiscard]] bool is_intact_beside() const { return has("other/0.log") && has("other/keep"); }
};

}  // namespace

TEST_CASE("a log is located by what the runtime says, only in its pod's directory and by its attempt's name") {
  const LogFile expected{.directory = pod + "/main", .name = "3.log"};
  CHECK(locate_log("/var/log/pods", pod, 3, "/var/log/pods/shop_web_u1/main/3.log") == expected);
  CHECK(locate_log("/var/log/pods/", pod, 3, "/var/log/pods/shop_web_u1/main/3.log") == expected);
  for (const auto* path : {"", "3.log", "/var/log/pods/shop_web_u1/3.log", "/var/log/pods/shop_web_u1/main/2.log",
                           "/var/log/pods/shop_web_u1/main/", "/var/log/pods/shop_web_u1/main/3.log/",
                           "/var/log/pods/shop_web_u1/main/../3.log", "/var/log/pods/shop_web_u1/../3.log",
                           "/var/log/pods/shop_web_u1/./3.log", "/var/log/pods/shop_web_u1//3.log",
                           "/var/log/pods/shop_web_u1/main/sub/3.log", "/var/log/pods/shop_web_u2/main/3.log",
                           "/var/log/pods/shop_web_u1x/main/3.log", "/etc/shop_web_u1/main/3.log",
                           "var/log/pods/shop_web_u1/main/3.log"}) {
    CAPTURE(path);
    CHECK_FALSE(locate_log("/var/log/pods", pod, 3, path).has_value());
  }
  CHECK_FALSE(locate_log("/var/log/pods", "..", 3, "/var/log/pods/../main/3.log").has_value());
  CHECK_FALSE(locate_log("/var/log/pods", "a/b", 3, "/var/log/pods/a/b/main/3.log").has_value());
  CHECK_FALSE(locate_log("/var/log/pods", "", 3, "/var/log/pods//main/3.log").has_value());
}

TEST_CASE("a log goes with what its rotation left, and other attempts' stay") {
  const Logs logs;
  const auto removed = logs.remove();
  CHECK(removed.files == 3);
  CHECK_FALSE(removed.error.has_value());
  for (const auto* name : {"1.log", "10.log", "0.logs"}) CHECK(logs.has("pods/" + pod + "/main/" + name));
  CHECK_FALSE(logs.has("pods/" + pod + "/main/0.log"));
  const auto again = logs.remove();
  CHECK(again.files == 0);
  CHECK_FALSE(again.error.has_value());
  CHECK_FALSE(logs.remove("gone").error.has_value());
  CHECK_FALSE(remove_log(logs.tree.path("no"), {.directory = pod + "/main", .name = "0.log"}).error.has_value());
}

TEST_CASE("a log that is a symbolic link goes itself, not what it leads to") {
  const Logs logs;
  fs::remove(logs.root / pod / "main/0.log");
  fs::create_symlink(logs.tree.path("other/0.log"), logs.root / pod / "main/0.log");
  CHECK(logs.remove().files == 3);
  CHECK_FALSE(logs.has("pods/" + pod + "/main/0.log"));
  CHECK(logs.is_intact_beside());
}

TEST_CASE("a directory that is a symbolic link leads nowhere") {
  const Logs logs;
  SUBCASE("the container's") {
    fs::create_directory_symlink(logs.tree.path("other"), logs.root / pod / "linked");
    const auto removed = logs.remove("linked");
    CHECK(removed.files == 0);
    CHECK(removed.error.has_value());
  }
  SUBCASE("the pod's, for one log") {
    fs::create_directory_symlink(logs.tree.path("other"), logs.root / "shop_evil_u2");
    logs.tree.add("other", dir("main", {file("0.log", "precious")}));
    CHECK(remove_log(logs.root, {.directory = "shop_evil_u2/main", .name = "0.log"}).error.has_value());
    CHECK(logs.has("other/main/0.log"));
  }
  SUBCASE("the pod's, for all of them") {
    fs::create_directory_symlink(logs.tree.path("other"), logs.root / "shop_evil_u2");
    CHECK(value_of(log_directories(logs.root)) == Names{pod});
    CHECK(logs.remove_all("shop_evil_u2").error.has_value());
  }
  SUBCASE("one in a directory that goes") {
    fs::create_directory_symlink(logs.tree.path("other"), logs.root / pod / "linked");
    CHECK_FALSE(logs.remove_all().error.has_value());
    CHECK_FALSE(logs.has("pods/" + pod));
  }
  CHECK(logs.is_intact_beside());
}

TEST_CASE("names that lead elsewhere are none") {
  const Logs logs;
  for (const auto* name : {"", ".", "..", "../other", "a/b"}) {
    CAPTURE(name);
    CHECK(logs.remove_all(name).error.has_value());
    CHECK(uid_of_log_directory(name).empty());
  }
  CHECK(remove_log(logs.root, {.directory = "../other", .name = "0.log"}).error.has_value());
  CHECK(logs.is_intact_beside());
  CHECK(logs.has("pods/" + pod + "/main/1.log"));
}

TEST_CASE("a directory of logs has a name of three parts, and its uid is the last") {
  CHECK(uid_of_log_directory("shop_web_u1") == "u1");
  CHECK(uid_of_log_directory("shop_my_web_u1") == "u1");  // a pod that no kubelet made
  for (const auto* name : {"web_u1", "u1", "lost+found", "shop_web_"}) CHECK(uid_of_log_directory(name).empty());
  const Tree tree{{dir("shop_b_2"), dir("shop_a_1"), dir("u1"), dir("lost+found"), file("shop_c_3", "no directory")}};
  CHECK(value_of(log_directories(tree.path())) == Names{"shop_a_1", "shop_b_2"});
  CHECK(value_of(log_directories(tree.path("no"))).empty());
}

TEST_CASE("the logs of a pod go with everything in them") {
  const Logs logs;
  for (int number = 0; number < 2500; ++number)  // more than are listed at a time
    logs.tree.add("pods/" + pod, file("f" + std::to_string(number), ""));
  logs.tree.add("pods/" + pod + "/main", dir("deep", {dir("deeper", {file("x", "y")}), dir("empty")}));
  const auto removed = logs.remove_all();
  CHECK(removed.files == 6 + 2500 + 1);
  CHECK_FALSE(removed.error.has_value());
  CHECK_FALSE(logs.has("pods/" + pod));
  CHECK(logs.is_intact_beside());
  CHECK_FALSE(logs.remove_all().error.has_value());
}

TEST_CASE("what there is no time for stays") {
  const Logs logs;
  const auto removed = remove_log_directory(logs.root, pod, os::now() - 1s);
  REQUIRE(removed.error.has_value());
  CHECK(removed.error->code == ETIME);
  CHECK(removed.files == 0);
  CHECK_FALSE(logs.remove_all().error.has_value());
}

TEST_CASE("what is mounted below is not entered") {
  SKIP_IF(Mount::impossible());
  const Logs logs;
  logs.tree.add("pods/" + pod, dir("mounted"));
  const auto mount = Mount::bind(logs.tree.path("other"), logs.root / pod / "mounted");
  CHECK(remove_log(logs.root, {.directory = pod + "/mounted", .name = "0.log"}).error.has_value());
  CHECK(logs.remove_all().error.has_value());
  CHECK_FALSE(logs.has("pods/" + pod + "/main"));
  CHECK(logs.is_intact_beside());
}

TEST_CASE("who exchanges a directory for a link while it is being removed has nothing else removed") {
  const Logs logs;
  std::atomic<bool> stop = false;
  const auto trap = logs.root / pod / "trap";
  const auto link = logs.root / pod / "link";
  std::error_code ignored;
  fs::create_directory(trap);
  fs::create_directory_symlink(logs.tree.path("other"), link);
  std::thread attacker{[&] {
    while (!stop) {
      ::renameat2(AT_FDCWD, trap.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
      std::error_code error;
      fs::create_directory(trap, error);
      fs::create_directory_symlink(logs.tree.path("other"), link, error);
    }
  }};
  for (int round = 0; round < 100; ++round) {
    static_cast<void>(logs.remove("trap"));
    static_cast<void>(remove_log_directory(logs.root, pod, os::now() + 20ms));
    fs::create_directory(logs.root / pod, ignored);
  }
  stop = true;
  attacker.join();
  CHECK(logs.is_intact_beside());
}

TEST_CASE("who fills a directory faster than it is removed ends the removal by its time, no later") {
  const Logs logs;
  std::atomic<bool> stop = false;
  std::thread writer{[&] {
    for (int number = 0; !stop; ++number) {
      const auto name = logs.root / pod / ("f" + std::to_string(number));
      ::close(::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
  }};
  const auto removed = remove_log_directory(logs.root, pod, os::now() + 200ms);
  stop = true;
  writer.join();
  // It was through in a moment in which nothing was there, or its time was over.
  CHECK((!removed.error || removed.error->code == ETIME || removed.error->code == ENOTEMPTY));
  CHECK(logs.is_intact_beside());
}

}  // namespace evictd::evict::pod_logs_test
