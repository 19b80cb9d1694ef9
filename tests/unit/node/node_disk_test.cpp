#include "node/node_disk.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "async/side_thread.hpp"
#include "fixture/mount.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::node::node_disk_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using core::Signal;
using fixture::dir;
using fixture::Mount;
using fixture::Tree;

constexpr core::FilesystemLayout dedicated{.dedicated_imagefs = true};

core::Instant now() { return core::Instant::clock::now(); }

config::NodeSettings rooted_at(const std::filesystem::path& path) {
  config::NodeSettings settings;
  settings.kubelet_root = path.native();
  return settings;
}

/// A node's disks, and a reactor that runs when told.
struct Disks {
  explicit Disks(const std::filesystem::path& kubelet, NodeDisk::Read read = read_filesystem,
                 core::Duration patience = DiskReader::patience)
      : disk{reactor.get_executor(), rooted_at(kubelet), std::move(read), patience, maker()} {}

  /// Of workers, unless this node is short of pids.
  NodeDisk::MakeWorker maker() {
    return [this](const asio::any_io_executor& executor, const std::string& name) {
      if (no_threads) throw std::system_error{EAGAIN, std::system_category()};
      return std::make_unique<async::SideThread>(executor, name);
    };
  }

  /// Returns once both have answered or are silent.
  void read() {
    bool done = false;
    asio::co_spawn(reactor, disk.read_now(), [&](const std::exception_ptr&) { done = true; });
    run_until([&] { return done; });
  }
  [[nodiscard]] std::vector<Error> observe() {
    read();
    return disk.observe(seen, now());
  }
  void run_until(const std::function<bool()>& condition) {
    const auto give_up = now() + 10s;
    while (!condition()) {
      if (now() >= give_up) throw std::runtime_error("it does not come");
      reactor.restart();
      reactor.run_one_for(10ms);
    }
  }

  bool no_threads = false;
  asio::io_context reactor{1};
  NodeDisk disk;
  core::Observations seen;
};

/// File systems that answer at once, except for one while it hangs.
class Answers {
 public:
  explicit Answers(std::filesystem::path hanging) : state_{std::make_shared<State>(std::move(hanging))} {}
  ~Answers() { release(); }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  [[nodiscard]] NodeDisk::Read read() const {
    return [state = state_](const std::filesystem::path& path) -> os::FileResult<FilesystemReading> {
      if (path == state->hanging) {
        ++state->calls;
        if (state->hangs) state->released.wait();
      }
      return FilesystemReading{
          .available = state->available, .capacity = 100, .inodes = {}, .device = path == state->hanging ? 1U : 2U};
    };
  }
  void hang() { state_->hangs = true; }
  void release() {
    if (state_->hangs.exchange(false)) state_->release.set_value();
  }
  void set_available(std::int64_t bytes) { state_->available = bytes; }
  [[nodiscard]] int calls() const { return state_->calls; }

 private:
  struct State {
    explicit State(std::filesystem::path path) : hanging{std::move(path)} {}
    std::filesystem::path hanging;
    std::atomic<bool> hangs = false;
    std::atomic<int> calls = 0;
    std::atomic<std::int64_t> available = 50;
    std::promise<void> release{};
    std::shared_future<void> released = release.get_future().share();
  };
  std::shared_ptr<State> state_;
};

struct Heard final : NodeDisk::Listener {
  std::vector<std::string> silent;
  std::vector<std::string> answered;
  int settled = 0;

  void disks_settled() override { ++settled; }
  void disk_fell_silent(const std::string& which, const Error& error) override {
    silent.push_back(which + ": " + error.message);
  }
  void disk_answers_again(const std::string& which, const std::string& /*what*/) override { answered.push_back(which); }
};

}  // namespace

TEST_CASE("as long as the runtime named no file system, images and layers are not taken to lie on nodefs") {
  const Tree tree;
  Disks disks{tree.path()};
  const auto before = now();
  CHECK(disks.observe().empty());
  const auto& seen = disks.seen;
  REQUIRE(seen[Signal::NodefsAvailable]);
  CHECK(seen[Signal::NodefsAvailable]->capacity > 0);
  CHECK(seen[Signal::NodefsAvailable]->time >= before);
  CHECK_FALSE(seen[Signal::ImagefsAvailable]);
  CHECK_FALSE(seen[Signal::ContainerfsInodesFree]);
  CHECK_FALSE(disks.disk.available(Signal::ImagefsAvailable));
  CHECK_FALSE(disks.disk.layout());
  REQUIRE(disks.disk.set_imagefs(tree.path()));
  CHECK(disks.observe().empty());
  CHECK(seen[Signal::ImagefsAvailable] == seen[Signal::NodefsAvailable]);
  CHECK(seen[Signal::ContainerfsAvailable] == seen[Signal::NodefsAvailable]);
  CHECK(seen[Signal::ImagefsInodesFree] == seen[Signal::NodefsInodesFree]);
}

TEST_CASE("signals that are not of disks are left as they are") {
  const Tree tree;
  Disks disks{tree.path()};
  disks.seen[Signal::MemoryAvailable] = core::Observation{.available = 1, .capacity = 2};
  CHECK(disks.observe().empty());
  CHECK(disks.seen[Signal::MemoryAvailable] == core::Observation{.available = 1, .capacity = 2});
}

TEST_CASE("where the kubelet's directory does not exist, its nearest parent stands for it") {
  const Tree tree;
  Disks disks{tree.path("not/yet/there")};
  CHECK(disks.observe().empty());
  CHECK(disks.seen[Signal::NodefsAvailable]);
}

TEST_CASE("a kubelet's directory that cannot be one is an error that names the key") {
  const Tree tree{fixture::file("f", "")};
  Disks disks{tree.path("f/below")};
  const auto errors = disks.observe();
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].message == "nodefs (node.kubeletRoot): " + tree.path("f/below").native() + ": Not a directory");
  CHECK_FALSE(disks.seen[Signal::NodefsAvailable]);
}

TEST_CASE("an imagefs that cannot be read loses its observations, and nodefs keeps its own") {
  const Tree tree;
  Disks disks{tree.path()};
  CHECK(disks.observe().empty());
  REQUIRE(disks.disk.set_imagefs(tree.path("gone")));
  const auto errors = disks.observe();
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].message.starts_with("imagefs"));
  CHECK(disks.seen[Signal::NodefsAvailable]);
  CHECK_FALSE(disks.seen[Signal::ImagefsAvailable]);
  CHECK_FALSE(disks.seen[Signal::ContainerfsInodesFree]);
}

TEST_CASE("images on the same device are not a dedicated file system") {
  const Tree tree{std::vector{dir("kubelet"), dir("containerd")}};
  Disks disks{tree.path("kubelet")};
  REQUIRE(disks.disk.set_imagefs(tree.path("containerd")));
  CHECK(disks.observe().empty());
  CHECK(disks.disk.layout() == core::FilesystemLayout{});
}

TEST_CASE("images on another device are, and their numbers are that device's") {
  SKIP_IF(Mount::impossible());
  const Tree tree{std::vector{dir("kubelet"), dir("containerd")}};
  const auto nodefs = Mount::tmpfs(tree.path("kubelet"), "size=1m,nr_inodes=100");
  const auto imagefs = Mount::tmpfs(tree.path("containerd"), "size=2m,nr_inodes=200");
  Disks disks{tree.path("kubelet")};
  REQUIRE(disks.disk.set_imagefs(tree.path("containerd")));
  CHECK(disks.observe().empty());
  CHECK(disks.disk.layout() == dedicated);
  CHECK(disks.seen[Signal::NodefsAvailable]->capacity == 1 << 20);
  CHECK(disks.seen[Signal::NodefsInodesFree]->capacity == 100);
  CHECK(disks.seen[Signal::ImagefsAvailable]->capacity == 2 << 20);
  CHECK(disks.seen[Signal::ContainerfsInodesFree]->capacity == 200);
}

TEST_CASE("a file system mounted later at the kubelet's directory is the one observed") {
  SKIP_IF(Mount::impossible());
  const Tree tree;
  Disks disks{tree.path("kubelet")};
  CHECK(disks.observe().empty());
  tree.add("", dir("kubelet"));
  const auto mount = Mount::tmpfs(tree.path("kubelet"), "size=1m");
  CHECK(disks.observe().empty());
  CHECK(disks.seen[Signal::NodefsAvailable]->capacity == 1 << 20);
}

TEST_CASE("between observations each disk signal says what was read last") {
  const Tree tree;
  Disks disks{tree.path("not/yet/there")};
  CHECK_FALSE(disks.disk.available(Signal::NodefsAvailable));
  REQUIRE(disks.disk.set_imagefs(tree.path()));
  CHECK(disks.observe().empty());
  for (const auto signal : {Signal::NodefsAvailable, Signal::ImagefsAvailable, Signal::ContainerfsAvailable})
    CHECK(disks.disk.available(signal).value_or(0) > 0);
  for (const auto signal : {Signal::NodefsInodesFree, Signal::ImagefsInodesFree, Signal::ContainerfsInodesFree})
    CHECK(disks.disk.available(signal).has_value() == disks.seen[signal].has_value());
  REQUIRE(disks.disk.set_imagefs(tree.path("gone")));
  CHECK_FALSE(disks.disk.available(Signal::ImagefsAvailable));  // nor before it is read
  disks.read();
  CHECK(disks.disk.available(Signal::NodefsAvailable));
  CHECK_FALSE(disks.disk.available(Signal::ImagefsAvailable));
  CHECK_FALSE(disks.disk.available(Signal::ContainerfsInodesFree));
}

TEST_CASE("what is asked for since a time is told once when it is there, and not where it is there already") {
  const Tree tree;
  Disks disks{tree.path()};
  Heard heard;
  disks.disk.listen(&heard);
  const auto wake = now();
  CHECK(disks.disk.read_since(wake));
  disks.run_until([&] { return heard.settled == 1; });
  CHECK(disks.observe().empty());
  CHECK(disks.seen[Signal::NodefsAvailable]->time >= wake);
  CHECK_FALSE(disks.disk.read_since(wake));
  CHECK(heard.settled == 1);
  CHECK(disks.disk.read_since(now()));
}

TEST_CASE("a disk that does not answer is told once, not measured, and asked by one call; the other one goes on") {
  Answers answers{"/nodefs"};
  Disks disks{"/nodefs", answers.read(), 2s};  // within which those that answer are heard on a busy machine
  Heard heard;
  disks.disk.listen(&heard);
  REQUIRE(disks.disk.set_imagefs("/imagefs"));
  CHECK(disks.observe().empty());
  CHECK(disks.disk.layout() == dedicated);
  REQUIRE(disks.seen[Signal::NodefsAvailable]);
  const auto calls = answers.calls();

  answers.hang();
  CHECK(disks.disk.read_since(now()));
  CHECK(disks.disk.available(Signal::NodefsAvailable) == 50);  // what it said last, until it is silent
  disks.run_until([&] { return !heard.silent.empty(); });
  CHECK(heard.silent == std::vector<std::string>{
                            "nodefs: no answer from /nodefs for 2s; its signals are not measured until it answers"});
  CHECK(heard.settled == 1);  // there is nothing more to wait for
  answers.set_available(40);
  for (int i = 0; i < 3; ++i) CHECK(disks.observe().empty());
  CHECK_FALSE(disks.seen[Signal::NodefsAvailable]);
  CHECK_FALSE(disks.disk.available(Signal::NodefsAvailable));
  CHECK(disks.seen[Signal::ImagefsAvailable]->available == 40);
  CHECK(disks.disk.layout() == dedicated);
  CHECK(answers.calls() == calls + 1);
  CHECK(heard.silent.size() == 1);

  answers.release();
  disks.run_until([&] { return !heard.answered.empty(); });
  CHECK(heard.answered == std::vector<std::string>{"nodefs"});
  CHECK(disks.observe().empty());
  CHECK(disks.seen[Signal::NodefsAvailable]->available == 40);
}

TEST_CASE("whoever looks at a disk is called when it answers, and once however often it was asked meanwhile") {
  Answers answers{"/nodefs"};
  Disks disks{"/nodefs", answers.read(), 50ms};
  Heard heard;
  disks.disk.listen(&heard);
  disks.read();
  answers.hang();
  int seen = 0;
  for (int i = 0; i < 3; ++i) disks.disk.look(Signal::NodefsAvailable, [&] { ++seen; });
  disks.run_until([&] { return !heard.silent.empty(); });
  disks.disk.look(Signal::NodefsAvailable, [&] { ++seen; });
  CHECK(seen == 0);
  answers.set_available(7);
  answers.release();
  disks.run_until([&] { return seen > 0; });
  CHECK(disks.disk.available(Signal::NodefsAvailable) == 7);
  disks.read();
  CHECK(seen == 1);
}

TEST_CASE("one file system under two names has one reading, whichever name was read last") {
  const auto left = std::make_shared<std::atomic<std::int64_t>>(50);
  Disks disks{"/kubelet", [left](const std::filesystem::path&) -> os::FileResult<FilesystemReading> {
                return FilesystemReading{.available = --*left, .capacity = 100, .inodes = {}, .device = 1};
              }};
  REQUIRE(disks.disk.set_imagefs("/images"));
  CHECK(disks.observe().empty());
  for (const auto signal : {Signal::ImagefsAvailable, Signal::NodefsAvailable, Signal::ContainerfsAvailable}) {
    bool seen = false;
    disks.disk.look(signal, [&] { seen = true; });
    disks.run_until([&] { return seen; });
    CHECK(disks.disk.available(Signal::NodefsAvailable) == *left);
    CHECK(disks.disk.available(Signal::ImagefsAvailable) == *left);
  }
}

/// One file system for the kubelet and the images, until the kubelet's directory is of another one. Read by both names.
struct SharedDisk {
  /// Shared with threads that may read still when all is taken down.
  struct State {
    std::atomic<int> image_readings = 0;
    std::atomic<bool> parted = false;
    std::atomic<std::int64_t> available = 50;
    std::atomic<bool> hangs = false;
  };

  SharedDisk() {
    disks.disk.listen(&heard);
    REQUIRE(disks.disk.set_imagefs("/images"));
    disks.read();
  }
  ~SharedDisk() {
    state->hangs = false;
    state->hangs.notify_all();
  }
  SharedDisk(const SharedDisk&) = delete;
  SharedDisk& operator=(const SharedDisk&) = delete;

  static NodeDisk::Read read(std::shared_ptr<State> state) {
    return [state = std::move(state)](const std::filesystem::path& path) -> os::FileResult<FilesystemReading> {
      const bool is_images = path == "/images";
      if (is_images) ++state->image_readings;
      state->hangs.wait(true);
      return FilesystemReading{.available = state->available,
                               .capacity = 100,
                               .inodes = {},
                               .device = !is_images && state->parted ? 2U : 1U};
    };
  }
  /// Asks, and takes what there is once that is told. When it was asked.
  core::Instant ask() {
    const auto asked = now();
    const auto told = heard.settled;
    REQUIRE(disks.disk.read_since(asked));
    disks.run_until([&] { return heard.settled > told; });
    CHECK(disks.disk.observe(disks.seen, now()).empty());
    return asked;
  }

  std::shared_ptr<State> state = std::make_shared<State>();
  Heard heard;
  Disks disks{"/kubelet", read(state), 2s};  // within which they answer on a busy machine
};

TEST_CASE("one file system under two names is read by one of them, and by the other once a minute") {
  SharedDisk shared;
  for (int i = 0; i < 10; ++i) {
    const auto asked = shared.ask();
    CHECK(shared.disks.seen[Signal::ImagefsAvailable]->time >= asked);
  }
  const int readings = shared.state->image_readings;
  CHECK(readings <= 2);  // as it was named, and by the first read()

  shared.disks.disk.read_since(now() + 1min);  // no reading is as new: they are read until it is over
  shared.disks.run_until([&] { return shared.state->image_readings > readings; });
}

TEST_CASE("where one file system becomes two, both are read before anybody is told") {
  SharedDisk shared;
  CHECK(shared.disks.disk.layout() == core::FilesystemLayout{});
  shared.state->parted = true;
  const auto asked = shared.ask();
  CHECK(shared.disks.seen[Signal::NodefsAvailable]->time >= asked);
  CHECK(shared.disks.seen[Signal::ImagefsAvailable]->time >= asked);
  CHECK(shared.disks.disk.layout() == dedicated);
}

TEST_CASE("what was read long ago by the other name does not come back when the disk hangs") {
  SharedDisk shared;
  shared.ask();
  shared.state->available = 40;
  for (int i = 0; i < 2; ++i) shared.ask();
  CHECK(shared.disks.disk.available(Signal::ImagefsAvailable) == 40);

  shared.state->hangs = true;
  shared.heard.silent.clear();  // of a machine that had no time for one of them
  shared.disks.disk.read_since(now());
  shared.disks.run_until([&] {
    return std::ranges::any_of(shared.heard.silent, [](const auto& line) { return line.starts_with("nodefs"); });
  });
  CHECK(shared.disks.disk.observe(shared.disks.seen, now()).empty());
  CHECK_FALSE(shared.disks.seen[Signal::NodefsAvailable]);
  CHECK_FALSE(shared.disks.seen[Signal::ImagefsAvailable]);
  CHECK_FALSE(shared.disks.disk.available(Signal::ContainerfsAvailable));
}

TEST_CASE("an imagefs of its own counts from its first reading, also where nodefs was read since that began") {
  Answers answers{"/images"};
  answers.hang();
  Disks disks{"/kubelet", answers.read(), 5s};
  REQUIRE(disks.disk.set_imagefs("/images"));
  bool seen = false;
  disks.disk.look(Signal::NodefsAvailable, [&] { seen = true; });
  disks.run_until([&] { return seen; });
  answers.release();
  disks.run_until([&] { return disks.disk.layout() == dedicated; });
  CHECK(disks.disk.available(Signal::ImagefsAvailable));
}

TEST_CASE("where no thread can be had for imagefs that is an error, nodefs goes on, and a later call succeeds") {
  Answers answers{"/nodefs"};
  Disks disks{"/nodefs", answers.read()};
  disks.no_threads = true;
  const auto refused = disks.disk.set_imagefs("/imagefs");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "/imagefs: no thread to read it: Resource temporarily unavailable");
  CHECK(disks.observe().empty());
  CHECK(disks.seen[Signal::NodefsAvailable]);
  CHECK_FALSE(disks.seen[Signal::ImagefsAvailable]);

  disks.no_threads = false;
  REQUIRE(disks.disk.set_imagefs("/imagefs"));
  CHECK(disks.observe().empty());
  CHECK(disks.seen[Signal::ImagefsAvailable]);
}

TEST_CASE("an imagefs in whose place another one cannot be read yet is measured until it can") {
  Answers answers{"/nodefs"};
  Disks disks{"/nodefs", answers.read()};
  REQUIRE(disks.disk.set_imagefs("/imagefs"));
  disks.no_threads = true;
  CHECK_FALSE(disks.disk.set_imagefs("/other"));
  CHECK_FALSE(disks.disk.set_imagefs("/other"));  // nor is it taken for done
  CHECK(disks.observe().empty());
  CHECK(disks.seen[Signal::ImagefsAvailable]);
}

TEST_CASE("nothing waits for a disk that hangs when all is taken down") {
  Answers answers{"/nodefs"};
  answers.hang();
  {
    Disks disks{"/nodefs", answers.read(), 50ms};
    disks.disk.read_since(now());
    disks.reactor.poll();
  }
  answers.release();
}

}  // namespace evictd::node::node_disk_test
