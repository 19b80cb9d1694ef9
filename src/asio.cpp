// Asio, compiled once for the whole program (BOOST_ASIO_SEPARATE_COMPILATION): its headers alone then cost each file
// little.
#include <sys/epoll.h>

#include "async/turns.hpp"  // IWYU pragma: keep

// Asio does not tell how long a turn of its reactor takes. Its one wait does: what lies between two of them is a turn.
#define epoll_wait ::evictd::async::wait_for_events
#include <boost/asio/impl/src.hpp>
// A unity build puts other files behind this one.
#undef epoll_wait
