#include "app/kubelet_processes.hpp"

#include <utility>

#include "async/offload.hpp"
#include "kubelet/process.hpp"

namespace asio = boost::asio;

namespace evictd::app {

KubeletProcesses::KubeletProcesses(std::filesystem::path proc) : proc_{std::move(proc)} {}

asio::awaitable<std::optional<bool>> KubeletProcesses::kubelet_runs(core::Instant give_up) {
  auto look = [proc = proc_] { return kubelet::find_process(proc).has_value(); };
  auto looking = async::offload(thread_.get_executor(), std::move(look), give_up);
  const auto found = co_await std::move(looking);
  co_return found;
}

}  // namespace evictd::app
