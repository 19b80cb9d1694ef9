#include "evict/runtime_look.hpp"

#include <api.pb.h>

#include <utility>

#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "cri/reply.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::evict {
namespace {

using os::now;

}  // namespace

RuntimeView RuntimeView::of(const cri::v1::ListContainersResponse& containers,
                            const cri::v1::ListPodSandboxResponse& sandboxes) {
  RuntimeView view;
  for (const auto& container : containers.containers())
    if (container.state() == cri::v1::CONTAINER_RUNNING)
      view.running.try_emplace(container.pod_sandbox_id(), container.metadata().name());
  for (const auto& sandbox : sandboxes.items()) {
    view.sandboxes.insert(sandbox.id());
    if (sandbox.state() == cri::v1::SANDBOX_READY) view.ready.insert(sandbox.id());
    view.by_pod_uid[sandbox.metadata().uid()].push_back(sandbox.id());
  }
  return view;
}

RuntimeLook::RuntimeLook(asio::any_io_executor reactor, cri::Client& runtime)
    : reactor_{std::move(reactor)}, runtime_{runtime}, ended_{reactor_, asio::steady_timer::time_point::max()} {}

asio::awaitable<RuntimeLook::Answer> RuntimeLook::since(core::Instant since) {
  while (answered_ < since) {
    if (!std::exchange(looking_, true)) async::spawn(reactor_, look(), "looking at the runtime");
    // It has ended already where no runtime is there: the connection is refused at once.
    if (looking_) co_await async::wait(ended_);
  }
  co_return answer_;
}

asio::awaitable<void> RuntimeLook::look() {
  if (const auto next = begun_ + interval; now() < next) co_await async::sleep(next);
  begun_ = now();
  answer_ = co_await ask();
  answered_ = begun_;
  looking_ = false;
  ended_.cancel();
}

asio::awaitable<RuntimeLook::Answer> RuntimeLook::ask() {
  const auto containers = co_await runtime_.list_containers();
  if (!containers) co_return std::unexpected(containers.error().error);
  const auto sandboxes = co_await runtime_.list_pod_sandboxes();
  if (!sandboxes) co_return std::unexpected(sandboxes.error().error);
  co_return std::make_shared<const RuntimeView>(RuntimeView::of(*containers, *sandboxes));
}

}  // namespace evictd::evict
