#include "app/event_history.hpp"

#include <fmt/format.h>

#include <utility>

#include "os/log.hpp"

namespace evictd::app {
namespace {

std::unique_ptr<events::EventStore> open_store(const boost::asio::any_io_executor& reactor,
                                               const config::AgentConfiguration& settings,
                                               const events::RescuedEvents& rescued) {
  const auto directory = config::state_files(settings).events;
  if (directory.empty()) return nullptr;
  auto store =
      events::EventStore::open(reactor, directory, static_cast<std::size_t>(settings.api.history_limit), rescued);
  if (store) return *std::move(store);
  os::log_warning("stateDirectory: {}: events are kept in memory only, and their numbers {}", store.error().message,
                  rescued.last == 0 ? "begin with 1" : fmt::format("go on after {}", rescued.last));
  return nullptr;
}

}  // namespace

EventHistory::EventHistory(const boost::asio::any_io_executor& reactor, const config::AgentConfiguration& settings,
                           const events::RescuedEvents& rescued)
    : store_{open_store(reactor, settings, rescued)},
      log_{reactor,
           {.history = static_cast<std::size_t>(settings.api.history_limit),
            .subscriber_queue = static_cast<std::size_t>(settings.api.subscriber_queue)},
           store_ != nullptr ? store_->take_earlier() : events::merged({}, rescued)} {
  if (store_ != nullptr) store_->follow(log_);
}

}  // namespace evictd::app
