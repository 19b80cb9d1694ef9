#include "app/kubelet_processes.hpp"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>

#include "cri/run.hpp"
#include "fixture/tree.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::app::kubelet_processes_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Tree;

const std::string root = "24 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n";

fixture::Entry kubelet_process() {
  return dir("812", {file("comm", "kubelet\n"), file("cmdline", std::string("/usr/bin/kubelet\0", 17)),
                     file("cgroup", "0::/system.slice/kubelet.service\n"),
                     file("status", "Name:\tkubelet\nUid:\t0\t0\t0\t0\nNSpid:\t812\n"), file("mountinfo", root)});
}

}  // namespace

TEST_CASE("the kubelet is looked for anew each time") {
  Tree proc{{dir("1", {file("mountinfo", root)})}};
  asio::io_context reactor{1};
  KubeletProcesses kubelet{proc.path()};
  const auto runs = [&] {
    std::optional<std::optional<bool>> found;
    auto look = [&]() -> asio::awaitable<void> { found = co_await kubelet.kubelet_runs(os::now() + test::patience); };
    asio::co_spawn(reactor, look, asio::detached);
    REQUIRE(test::run_until(reactor, [&] { return found.has_value(); }));
    return *found;
  };
  CHECK(runs() == false);
  proc.add("", kubelet_process());
  CHECK(runs() == true);
}

}  // namespace evictd::app::kubelet_processes_test
