#include "kube/configz.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <expected>
#include <optional>
#include <utility>

#include "async/spawn.hpp"
#include "config/yaml.hpp"
#include "kube/client.hpp"
#include "kube/message.hpp"

namespace asio = boost::asio;

namespace evictd::kube {

Result<std::string> ask_configz(const Credentials& kubelet, core::Duration deadline) {
  std::optional<Result<std::string>> answer;
  asio::io_context reactor{1};  // its own, which waits here for the answer and ends with it
  const auto executor = reactor.get_executor();
  Client client{executor, executor, kubelet, {.largest_body = config::max_file_size}};
  const auto ask = [&]() -> asio::awaitable<void> {
    Request request;
    request.target = "/configz";
    auto response = co_await client.send(std::move(request), deadline);
    if (!response)
      answer = std::unexpected(response.error());
    else if (!response->is_success())
      answer = fail({describe(*response)}, client.url() + "/configz");
    else
      answer = std::move(response->body);
    client.stop();
  };
  async::spawn(executor, ask(), "asking the kubelet what it goes by");
  while (!answer && reactor.run_one() > 0) {
  }
  if (!answer) return fail({"stopped"}, client.url() + "/configz");
  return *std::move(answer);
}

}  // namespace evictd::kube
