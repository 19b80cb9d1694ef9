#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "agent/black_box.hpp"
#include "config/agent_configuration.hpp"

namespace evictd::app {

/// Reads who holds what by descriptors of its own, which its thread shares with nobody. Null in a dry run, which kills
/// nobody, and where there is nothing to read by.
[[nodiscard]] std::unique_ptr<agent::BlackBox> make_black_box(const boost::asio::any_io_executor& reactor,
                                                              const config::AgentConfiguration& settings, bool dry_run);

}  // namespace evictd::app
