#include "evict/emptied.hpp"

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "async/sleep.hpp"
#include "evict/paced_look.hpp"
#include "node/cgroup_processes.hpp"
#include "os/kept_file.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::evict {
namespace {

using os::now;

/// cgroup.events, read and waited for through one descriptor: the kernel tells each reader what is new since its own
/// last reading.
class Population {
 public:
  Population(const asio::any_io_executor& reactor, os::KeptFile file) : file_{std::move(file)}, descriptor_{reactor} {
    boost::system::error_code out_of_memory;  // then looking is left
    descriptor_.assign(file_.descriptor(), out_of_memory);
  }
  Population(const Population&) = delete;
  Population& operator=(const Population&) = delete;
  ~Population() { descriptor_.release(); }  // closing is the file's

  [[nodiscard]] os::FileResult<bool> is_empty_or_gone() const { return node::is_empty_or_gone(file_); }

  /// Until the file says something else than when it was read, at the latest until `time`.
  asio::awaitable<void> change(core::Instant time) {
    const auto timer = std::make_shared<asio::steady_timer>(descriptor_.get_executor(), time);
    if (descriptor_.is_open()) {
      descriptor_.async_wait(asio::posix::stream_descriptor::wait_error, [timer](boost::system::error_code error) {
        if (!error) timer->cancel();
      });
    }
    co_await async::wait(*timer);
    boost::system::error_code ignored;
    descriptor_.cancel(ignored);
  }

 private:
  os::KeptFile file_;
  asio::posix::stream_descriptor descriptor_;
};

asio::awaitable<bool> told(Population& population, core::Instant deadline, core::Duration at_the_latest) {
  while (!counts_as_empty(population.is_empty_or_gone())) {
    if (now() >= deadline) co_return false;
    co_await population.change(std::min(deadline, now() + at_the_latest));
  }
  co_return true;
}

asio::awaitable<bool> looked_for(const node::PodCgroups& cgroups, const std::string& uid, core::Instant deadline,
                                 core::Duration at_the_latest) {
  core::Duration pause = 5ms;
  for (;;) {
    const auto begin = now();
    if (counts_as_empty(cgroups.is_empty_or_gone(uid))) co_return true;
    const auto end = now();
    if (end >= deadline) co_return false;
    co_await async::sleep(std::min(deadline, std::max(end + pause, earliest_next_look(begin, end))));
    pause = std::min(pause * 2, at_the_latest);
  }
}

}  // namespace

bool counts_as_empty(const os::FileResult<bool>& empty, bool without_cgroup) {
  return empty ? *empty : empty.error().code == EINVAL && without_cgroup;
}

asio::awaitable<bool> emptied(asio::any_io_executor reactor, const node::PodCgroups& cgroups, std::string uid,
                              core::Instant deadline, core::Duration at_the_latest) {
  auto events = cgroups.events(uid);
  if (!events || !*events) co_return co_await looked_for(cgroups, uid, deadline, at_the_latest);
  Population population{reactor, **std::move(events)};
  co_return co_await told(population, deadline, at_the_latest);
}

}  // namespace evictd::evict
