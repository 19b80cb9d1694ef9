#include "prekill/varlink_call.hpp"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "async/run_until_either.hpp"
#include "async/sleep.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "evict/kill_hooks.hpp"
#include "prekill/varlink_message.hpp"

namespace asio = boost::asio;

namespace evictd::prekill {
namespace {

/// Shared by both sides of the race against the clock.
struct HookTalk {
  explicit HookTalk(const asio::any_io_executor& reactor) : socket{reactor} {}

  asio::local::stream_protocol::socket socket;
  std::string cgroup;
  std::string outcome = evict::outcome_late;
};

std::string in_words(const boost::system::error_code& error) {
  if (error == asio::error::eof || error == asio::error::connection_reset || error == asio::error::broken_pipe)
    return "it left without an answer";
  return core::printable(error.message());
}

/// The answer, or why there is none.
asio::awaitable<Result<std::string>> read_answer(HookTalk& talk) {
  VarlinkReader reader;
  std::array<char, 4096> piece{};
  for (;;) {
    auto answer = reader.next();
    if (!answer) co_return std::unexpected(answer.error());
    if (*answer) co_return **std::move(answer);
    const auto space = asio::buffer(piece);
    const auto [error, size] = co_await talk.socket.async_read_some(space, asio::as_tuple(asio::use_awaitable));
    if (error) co_return fail(in_words(error));
    reader.add(std::string_view{piece.data(), size});
  }
}

asio::awaitable<std::string> call_and_answer(HookTalk& talk) {
  const auto call = notify_call(talk.cgroup);
  if (!call) co_return call.error().message;
  const auto bytes = asio::buffer(*call);
  const auto [error, size] = co_await asio::async_write(talk.socket, bytes, asio::as_tuple(asio::use_awaitable));
  if (error) co_return in_words(error);
  const auto answer = co_await read_answer(talk);
  if (!answer) co_return answer.error().message;
  if (const auto said = read_notify_answer(*answer); !said) co_return said.error().message;
  co_return evict::outcome_done;
}

asio::awaitable<void> talk_to_hook(std::shared_ptr<HookTalk> talk) {
  auto outcome = co_await call_and_answer(*talk);
  talk->outcome = std::move(outcome);
}

}  // namespace

asio::awaitable<std::string> notify_hook(os::FileDescriptor connection, std::string cgroup, core::Instant until) {
  const auto reactor = co_await asio::this_coro::executor;
  const auto talk = std::make_shared<HookTalk>(reactor);
  talk->cgroup = std::move(cgroup);
  boost::system::error_code error;
  talk->socket.assign(asio::local::stream_protocol{}, connection.get(), error);
  if (error) co_return core::printable(error.message());
  connection.release();
  const bool is_in_time = co_await async::run_until_either(talk_to_hook(talk), async::sleep(until));
  talk->socket.close(error);
  co_return is_in_time ? talk->outcome : evict::outcome_late;
}

}  // namespace evictd::prekill
