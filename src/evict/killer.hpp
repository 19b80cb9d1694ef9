#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "evict/kill.hpp"
#include "evict/protection.hpp"
#include "evict/reaper.hpp"
#include "node/cgroup.hpp"

namespace evictd::evict {

/// Kills without the runtime (kill.hpp), in the turn of the reactor that asks for it where that is short, else in a
/// thread of its own; and has the memory of the killed released.
class Killer {
 public:
  /// 20 ms of signals. With more processes a turn would last too long for what else the node needs meanwhile.
  static constexpr std::size_t most_in_a_turn = 512;

  /// `hierarchy` and `reaper` outlive this.
  struct Parts {
    const node::CgroupHierarchy& hierarchy;
    std::string pods_cgroup;
    Reaper& reaper;
    IsProtected is_protected;
  };

  Killer(boost::asio::any_io_executor reactor, Parts parts);

  /// `held` of the result is with the reaper already. Does nothing but say so where there are too many processes.
  [[nodiscard]] Kill kill_now(std::span<const Target> targets);
  /// However many; one after the other.
  [[nodiscard]] boost::asio::awaitable<Kill> kill_beside(std::vector<Target> targets);

 private:
  [[nodiscard]] Kill kill(std::span<const Target> targets, std::size_t most) const;

  boost::asio::any_io_executor reactor_;
  const Parts parts_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace evictd::evict
