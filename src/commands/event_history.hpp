#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "config/agent_configuration.hpp"
#include "events/event_store.hpp"

namespace evictd::commands {

/// Where events are kept over restarts (stateDirectory), with those of agents before this one. Null: nowhere, as
/// it is configured or, after a warning, because the directory cannot be used. `rescued`: see events::EventStore::open.
[[nodiscard]] std::unique_ptr<events::EventStore> open_event_history(const boost::asio::any_io_executor& reactor,
                                                                     const config::AgentConfiguration& settings,
                                                                     const events::RescuedEvents& rescued);

}  // namespace evictd::commands
