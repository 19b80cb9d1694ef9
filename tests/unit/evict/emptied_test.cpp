#include "evict/emptied.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <optional>

#include "fixture/real_cgroup.hpp"
#include "support/skip.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;
using evictd::fixture::no_real_cgroups;
using evictd::fixture::own_cgroup;
using evictd::fixture::real_hierarchy;
using evictd::fixture::RealCgroup;
using evictd::fixture::Sleeper;
using evictd::node::CgroupVersion;

namespace evictd::evict::emptied_test {
namespace {

/// A pod with a container, and one who waits for its end on a loop of its own.
class Waiting {
 public:
  void start(core::Duration deadline, core::Duration at_the_latest = rarest_look) {
    result_.reset();
    const auto until = std::chrono::steady_clock::now() + deadline;
    asio::co_spawn(reactor_, emptied(reactor_.get_executor(), cgroups_, "uid", until, at_the_latest),
                   [this](const std::exception_ptr&, bool result) { result_ = result; });
    reactor_.restart();
    reactor_.poll();  // what is to do before it must wait
  }
  std::optional<bool> result() {
    reactor_.restart();
    reactor_.run();
    return result_;
  }
  [[nodiscard]] bool waits() const { return !result_; }
  [[nodiscard]] node::PodCgroups& cgroups() { return cgroups_; }
  [[nodiscard]] bool is_told() const { return hierarchy_.version() == CgroupVersion::v2; }

  const RealCgroup pod{own_cgroup()};
  const RealCgroup container{own_cgroup("/container")};

 private:
  const node::CgroupHierarchy hierarchy_ = real_hierarchy();
  node::PodCgroups cgroups_ = [this] {
    node::PodCgroups cgroups{hierarchy_};
    cgroups.sync(std::array{node::PodCgroup{"uid", pod.path()}});
    return cgroups;
  }();
  asio::io_context reactor_{1};
  std::optional<bool> result_;
};

}  // namespace

TEST_SUITE_BEGIN("real cgroups");

TEST_CASE("a pod is waited for until its last process has ended") {
  SKIP_IF(no_real_cgroups());
  Waiting waiting;
  Sleeper one;
  Sleeper other;
  for (const auto* sleeper : {&one, &other}) waiting.container.put(sleeper->pid());
  // On v2 by the kernel's word alone: an hour is beyond the deadline.
  waiting.start(1min, waiting.is_told() ? core::Duration{1h} : rarest_look);
  REQUIRE(waiting.waits());
  one.stop();
  CHECK_FALSE(waiting.cgroups().is_empty_or_gone("uid").value());
  other.stop();
  const auto began = std::chrono::steady_clock::now();
  CHECK(waiting.result() == true);
  CHECK(std::chrono::steady_clock::now() - began < 50s);  // not by the deadline
}

TEST_CASE("a pod without processes, or without a cgroup, is not waited for") {
  SKIP_IF(no_real_cgroups());
  Waiting waiting;
  waiting.start(1min);
  CHECK(waiting.result() == true);
  waiting.cgroups().sync({});
  waiting.start(1min);
  CHECK(waiting.result() == true);
}

TEST_CASE("a pod whose cgroup is removed at once is gone") {
  SKIP_IF(no_real_cgroups());
  Waiting waiting;
  {
    const Sleeper sleeper;
    waiting.container.put(sleeper.pid());
    waiting.start(1min);
    REQUIRE(waiting.waits());
  }
  waiting.container.remove();
  waiting.pod.remove();
  CHECK(waiting.result() == true);
}

TEST_CASE("a pod that stays is waited for until the deadline") {
  SKIP_IF(no_real_cgroups());
  Waiting waiting;
  const Sleeper sleeper;
  waiting.container.put(sleeper.pid());
  waiting.start(30ms);
  CHECK(waiting.result() == false);
}

TEST_CASE("a wait can be dropped") {
  SKIP_IF(no_real_cgroups());
  // Of cgroups' files alone: threads that earlier tests left behind open and close others meanwhile.
  const auto files = [] {
    const std::filesystem::directory_iterator descriptors{"/proc/self/fd"};
    return std::ranges::count_if(descriptors, [](const auto& descriptor) {
      std::error_code gone;
      return std::filesystem::read_symlink(descriptor.path(), gone).native().starts_with("/sys/fs/cgroup");
    });
  };
  const auto before = files();
  {
    Waiting waiting;
    const Sleeper sleeper;
    waiting.container.put(sleeper.pid());
    waiting.start(1h);
    REQUIRE(waiting.waits());
  }
  CHECK(files() == before);
}

TEST_SUITE_END();

}  // namespace evictd::evict::emptied_test
