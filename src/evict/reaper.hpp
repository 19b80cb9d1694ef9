#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <vector>

#include "evict/kill.hpp"

namespace evictd::evict {

/// Takes back the memory of killed processes from threads of its own (process_mrelease(2), Linux 5.15): they need not
/// be scheduled for that, and a large address space is unmapped beside their own exit. Where the kernel lacks the call
/// nothing happens, and the memory comes back when the processes exit.
class Reaper {
 public:
  static constexpr std::size_t threads = 2;

  Reaper() : pool_{threads} {}

  /// The largest address spaces first, at most some dozens. Returns at once.
  void reap(std::vector<Signalled> processes);

 private:
  boost::asio::thread_pool pool_;
};

}  // namespace evictd::evict
