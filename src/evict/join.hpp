#pragma once
#include <boost/asio/awaitable.hpp>
#include <vector>

namespace evictd::evict {

/// Runs the operations side by side on the caller's executor and waits for all, also where one throws; then throws what
/// the first of those threw.
[[nodiscard]] boost::asio::awaitable<void> join(std::vector<boost::asio::awaitable<void>> operations);

}  // namespace evictd::evict
