#pragma once
#include <google/protobuf/message.h>
#include <grpcpp/client_context.h>
#include <CLI/App.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>

#include "core/error.hpp"
#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"

namespace evictd::ctl {

/// How often to look, as the command line has it.
struct Watch {
  std::chrono::milliseconds interval{};  ///< 0: once
};

/// Gives the command `-w, --watch[=INTERVAL]`.
[[nodiscard]] std::shared_ptr<Watch> add_watch(CLI::App& command);

/// What a command shows: one answer of the agent's.
struct Look {
  using Answer = Result<std::unique_ptr<google::protobuf::Message>>;
  std::function<Answer(const Client& client, grpc::ClientContext& call)> ask;  ///< the call has a deadline
  std::function<void(std::ostream& out, const google::protobuf::Message& answer)> print_table;
};

/// Asks and shows the answer in the format that was asked for; again and again where it is watched, until SIGINT or
/// SIGTERM. On a terminal a table is drawn over the one before it; elsewhere a blank line lies between two, a JSON
/// object is one line, and each YAML document begins with "---".
[[nodiscard]] Result<void> look(Context& context, const Watch& watch, const Look& what);

}  // namespace evictd::ctl
