#pragma once
#include <boost/asio/awaitable.hpp>
#include <vector>

namespace evictd::evict {

/// Runs the operations side by side on the caller's executor and waits for all. They must not throw.
[[nodiscard]] boost::asio::awaitable<void> join(std::vector<boost::asio::awaitable<void>> operations);

}  // namespace evictd::evict
