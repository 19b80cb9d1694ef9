#include "app/runtime_offers.hpp"

#include <api.pb.h>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "async/spawn.hpp"
#include "cri/client.hpp"
#include "cri/endpoint.hpp"
#include "cri/reply.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::app {
namespace {

/// evictd waits for this at its start. A runtime that works answers within milliseconds.
constexpr cri::Deadline patience = 500ms;
/// For so long a runtime must say nothing for having nothing to say.
constexpr auto quiet = 200ms;

std::string_view name(cri::v1::CgroupDriver driver) { return driver == cri::v1::SYSTEMD ? "systemd" : "cgroupfs"; }

asio::awaitable<void> stop_after(asio::awaitable<void> questions, asio::io_context& reactor) {
  co_await std::move(questions);
  reactor.stop();
}

/// Runs the questions to their end. The client's connection outlasts them.
template <class Ask>
void ask(const std::string& endpoint, cri::Deadline deadline, Ask questions) {
  asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), endpoint, deadline};
  async::spawn(reactor.get_executor(), stop_after(questions(client, reactor), reactor), "asking the runtime");
  reactor.run();
}

host::Offer cgroup_driver(const cri::Reply<cri::v1::RuntimeConfigResponse>& config) {
  host::Offer offer{
      .name = "runtime's cgroup driver", .available = config && config->has_linux(), .detail = {}, .consequence = {}};
  if (offer.available) {
    offer.detail = name(config->linux().cgroup_driver());
    return offer;
  }
  offer.detail = config ? "it says nothing of Linux" : config.error().error.message;
  offer.consequence =
      "where the pods' cgroup is not there yet, the KubeletConfiguration's cgroupDriver decides on its name";
  return offer;
}

/// A runtime that has no events says so at once; of one that has them nothing is heard as long as nothing happens.
/// containerd 1.7 is not asked: it would withhold the next event from whoever listens to it.
asio::awaitable<host::Offer> events(cri::Client& client, asio::io_context& reactor, bool is_containerd_1_7) {
  host::Offer offer{.name = "runtime events", .available = true, .detail = "GetContainerEvents", .consequence = {}};
  if (is_containerd_1_7) {
    offer.detail += ", each to one listener only";
    co_return offer;
  }
  const std::shared_ptr stream = client.container_events();
  asio::steady_timer timer{reactor, quiet};
  timer.async_wait([stream](boost::system::error_code ended_before) {
    if (!ended_before) stream->cancel();
  });
  const auto event = co_await stream->next();
  timer.cancel();
  if (event || event.error().failure == cri::Failure::Cancelled) co_return offer;
  offer.available = false;
  offer.detail = event.error().error.message;
  offer.consequence = "pods are listed when a cgroup of one appears, and every 10 s";
  co_return offer;
}

}  // namespace

std::optional<std::string> ask_cgroup_driver(const std::string& endpoint) {
  const auto parsed = cri::parse_endpoint(endpoint);
  if (!parsed) return std::nullopt;
  std::optional<std::string> driver;
  ask(*parsed, patience, [&](cri::Client& client, asio::io_context&) -> asio::awaitable<void> {
    const auto config = co_await client.runtime_config();
    if (config && config->has_linux()) driver = name(config->linux().cgroup_driver());
  });
  return driver;
}

std::vector<host::Offer> probe_runtime(const config::CriSettings& cri) {
  std::vector<host::Offer> offers{{.name = "container runtime", .available = false, .detail = {}, .consequence = {}}};
  ask(cri.endpoint, std::chrono::ceil<std::chrono::milliseconds>(cri.timeout),
      [&](cri::Client& client, asio::io_context& reactor) -> asio::awaitable<void> {
        const auto version = co_await client.version();
        auto& runtime = offers.front();
        runtime.available = version.has_value();
        runtime.detail = version ? fmt::format("{} {}", version->runtime_name(), version->runtime_version())
                                 : version.error().error.message;
        if (!version) {
          runtime.consequence = "no pod can be evicted until it answers; evictd waits for it";
          co_return;
        }
        const auto config = co_await client.runtime_config();
        offers.push_back(cgroup_driver(config));
        const bool is_containerd_1_7 =
            version->runtime_name() == "containerd" && version->runtime_version().starts_with("1.7");
        auto heard = co_await events(client, reactor, is_containerd_1_7);
        offers.push_back(std::move(heard));
      });
  return offers;
}

}  // namespace evictd::app
