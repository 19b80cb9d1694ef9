#include "app/monitoring.hpp"

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "async/offload.hpp"
#include "config/agent_configuration.hpp"
#include "core/duration.hpp"
#include "cri/call_observer.hpp"
#include "cri/client.hpp"
#include "events/event_log.hpp"
#include "events/status_source.hpp"
#include "metrics/exposition.hpp"
#include "os/log.hpp"
#include "os/now.hpp"
#include "web/event_feed.hpp"
#include "web/page.hpp"
#include "web/server.hpp"
#include "web/shared_body.hpp"

namespace asio = boost::asio;

namespace evictd::app {
namespace {

/// Once a minute at most: the client may come back at once. On the reactor.
void warn_of_client_failure(const std::string& reason) {
  static core::Instant next{};
  const auto now = os::now();
  if (now < next) return;
  next = now + std::chrono::minutes(1);
  os::log_warning("http: a client's connection was given up: {}", reason);
}

}  // namespace

struct Monitoring::Parts final : events::EventListener, cri::CallObserver {
  Parts(const asio::any_io_executor& reactor, const config::HttpSettings& http, const Monitored& given)
      : settings{http}, monitored{given} {
    monitored.events.observe(this);
    monitored.runtime.observe(this);
    if (settings.page)
      feed.emplace(reactor, writers.get_executor(), monitored.events, monitored.status, warn_of_client_failure);
    server.emplace(reactor,
                   web::ServerOptions{.address = settings.address, .port = static_cast<std::uint16_t>(settings.port)},
                   content(), warn_of_client_failure);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() override {
    monitored.events.observe(nullptr);
    monitored.runtime.observe(nullptr);
  }

  void appended(const events::EventPtr& event) override { exposition.count(*event); }
  void called(const cri::ObservedCall& call) override { exposition.count(call.method, call.code, call.time); }

  [[nodiscard]] metrics::Snapshot snapshot() const {
    metrics::Snapshot snapshot{.node = monitored.status.status()};
    const auto& events = monitored.events;
    snapshot.node.set_last_event_sequence(events.last_sequence());
    snapshot.events_kept = events.kept();
    snapshot.events_missed = events.missed();
    snapshot.event_subscribers = events.subscribers();
    return snapshot;
  }

  [[nodiscard]] web::Content content();

  config::HttpSettings settings;
  Monitored monitored;
  metrics::Exposition exposition;
  std::optional<web::EventFeed> feed;  // where there is a page
  std::optional<web::Server> server;
  asio::thread_pool writers{1};  // texts are written beside the loop. Goes first: it uses what is above
};

namespace {

/// A document that does not change.
web::Document page_document() {
  auto page = web::make_page();
  return {.content_type = "text/html; charset=utf-8",
          .headers = {{"Content-Security-Policy", page.security_policy}, {"Referrer-Policy", "no-referrer"}},
          .body = [html = std::move(page.html)]() -> asio::awaitable<std::string> { co_return html; }};
}

}  // namespace

Result<void> check_monitoring(const config::HttpSettings& settings) {
  boost::system::error_code error;
  asio::ip::make_address(settings.address, error);
  if (error) return fail(fmt::format("http.address: \"{}\" is no IP address", settings.address));
  return {};
}

Monitoring::Monitoring(std::unique_ptr<Parts> parts) : parts_{std::move(parts)} {}
Monitoring::~Monitoring() = default;

std::unique_ptr<Monitoring> Monitoring::make(const asio::any_io_executor& reactor, const config::HttpSettings& settings,
                                             const Monitored& monitored) {
  if (settings.port == 0) return nullptr;
  return std::unique_ptr<Monitoring>(new Monitoring{std::make_unique<Parts>(reactor, settings, monitored)});
}

web::Content Monitoring::Parts::content() {
  web::Content content;
  auto write_metrics = [this] {
    return async::offload(writers.get_executor(), [this, snapshot = snapshot()] { return exposition.text(snapshot); });
  };
  content.documents["/metrics"] = {.content_type = metrics::Exposition::content_type,
                                   .body = web::share_body(write_metrics)};
  if (!feed) return content;
  content.documents["/"] = page_document();
  content.streams["/events"] = [this] { return feed->watch(); };
  return content;
}

Result<void> Monitoring::start() {
  auto& server = *parts_->server;
  const auto& settings = parts_->settings;
  if (auto started = server.start(); !started) return fail(started.error(), "http.address, http.port");
  os::log_info("metrics{} are served on http://{}:{}", settings.page ? " and the status page" : "", settings.address,
               server.port());
  return {};
}

}  // namespace evictd::app
