#include "evict/pre_stop.hpp"

#include <api.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>
#include <variant>

#include "async/sleep.hpp"
#include "cri/reply.hpp"
#include "kube/http_hook.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::evict {
namespace {

asio::awaitable<Result<void>> run_command(cri::Client& runtime, const core::ExecHook& hook, const HookPlace& place,
                                          core::Instant end) {
  const auto left = std::chrono::ceil<std::chrono::seconds>(end - os::now());
  const auto ran = co_await runtime.exec_sync(place.container_id, hook.command, left);
  if (!ran) co_return std::unexpected(ran.error().error);
  if (ran->exit_code() != 0) co_return fail(fmt::format("its command ended with code {}", ran->exit_code()));
  co_return Result<void>{};
}

asio::awaitable<Result<std::string>> pod_address(cri::Client& runtime, const HookPlace& place) {
  if (place.host_network) co_return std::string("127.0.0.1");
  const auto status = co_await runtime.pod_sandbox_status(place.sandbox_id);
  if (!status) co_return std::unexpected(status.error().error);
  if (status->status().network().ip().empty()) co_return fail("the runtime knows no address of the pod");
  co_return status->status().network().ip();
}

asio::awaitable<Result<void>> run_get(asio::any_io_executor reactor, cri::Client& runtime,
                                      const core::HttpGetHook& hook, const HookPlace& place, core::Instant end) {
  std::string address;
  if (hook.host.empty()) {
    auto known = co_await pod_address(runtime, place);
    if (!known) co_return std::unexpected(known.error());
    address = *std::move(known);
  }
  const auto answered = co_await kube::run_http_hook(std::move(reactor), hook, std::move(address), end);
  if (!answered) co_return std::unexpected(answered.error());
  co_return Result<void>{};
}

}  // namespace

asio::awaitable<Result<void>> run_pre_stop(asio::any_io_executor reactor, cri::Client& runtime, core::PreStop hook,
                                           HookPlace place, core::Instant end) {
  std::string thrown;
  try {
    if (const auto* command = std::get_if<core::ExecHook>(&hook))
      co_return co_await run_command(runtime, *command, place, end);
    if (const auto* get = std::get_if<core::HttpGetHook>(&hook))
      co_return co_await run_get(reactor, runtime, *get, place, end);
    co_await async::sleep(std::min(end, os::now() + std::get<core::SleepHook>(hook).time));
    co_return Result<void>{};
  } catch (const std::exception& error) {
    thrown = error.what();
  }
  co_return fail(thrown);
}

}  // namespace evictd::evict
