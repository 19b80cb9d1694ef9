#include "async/spawn.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <stdexcept>
#include <utility>

namespace asio = boost::asio;

namespace evictd::async {
namespace {

std::string reason_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "what was thrown is no std::exception";
  }
}

}  // namespace

void spawn(const asio::any_io_executor& executor, asio::awaitable<void> operation, std::string_view what) {
  asio::co_spawn(executor, std::move(operation), [what](std::exception_ptr thrown) {
    if (thrown) throw std::runtime_error(fmt::format("{}: {}", what, reason_of(thrown)));
  });
}

void spawn_contained(const asio::any_io_executor& executor, asio::awaitable<void> operation,
                     std::move_only_function<void(const std::string& reason)> on_failure) {
  asio::co_spawn(executor, std::move(operation),
                 [on_failure = std::move(on_failure)](std::exception_ptr thrown) mutable {
                   if (thrown) on_failure(reason_of(thrown));
                 });
}

}  // namespace evictd::async
