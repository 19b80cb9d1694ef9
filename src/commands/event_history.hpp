#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "api/event_store.hpp"
#include "config/agent_configuration.hpp"

namespace evictd::commands {

/// Where events are kept over restarts (api.historyDirectory), with those of agents before this one. Null: nowhere, as
/// it is configured or, after a warning, because the directory cannot be used. `rescued`: see api::EventStore::open.
[[nodiscard]] std::unique_ptr<api::EventStore> open_event_history(const boost::asio::any_io_executor& reactor,
                                                                  const config::ApiSettings& settings,
                                                                  const api::RescuedEvents& rescued);

}  // namespace evictd::commands
