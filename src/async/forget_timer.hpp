#pragma once
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>

namespace evictd::async {

/// Cancels a timer so that the reactor does not wake for it. Asio leaves the kernel's timer at the time of a cancelled
/// one (Boost 1.81: epoll_reactor.ipp), and wakes then for nothing; a timer that is over has it set anew while the
/// reactor is awake. It costs some system calls, so it is for what happens at rest. On the reactor.
inline void forget(boost::asio::steady_timer& timer) {
  timer.expires_at(boost::asio::steady_timer::time_point::min());  // cancels
  timer.async_wait([](boost::system::error_code) {});
}

}  // namespace evictd::async
