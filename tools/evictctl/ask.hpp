#pragma once
#include <CLI/App.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/format.hpp"

namespace evictd::ctl {

/// How an answer is asked for.
struct Asking {
  Access access = Access::Look;
  std::chrono::milliseconds within = answer_within;
  std::chrono::milliseconds interval{};  ///< between two looks; 0: once
};

/// Gives the command `-w, --watch[=INTERVAL]`, which sets the interval.
[[nodiscard]] std::shared_ptr<Asking> add_watch(CLI::App& command);

/// Shows what `ask` gives; again and again where there is an interval, until SIGINT or SIGTERM. On a terminal a table
/// is drawn over the one before it; elsewhere a blank line lies between two.
[[nodiscard]] Result<void> show(Context& context, const Asking& asking,
                                const std::function<Result<std::string>(const Client&)>& ask);

/// Makes a call and shows its answer in the format that was asked for: as the table that `print(out, answer, look)`
/// makes, as a JSON object, which is one line where it is watched, or as a YAML document. Yields the last answer.
template <class Request, class Response, class Print>
Result<Response> ask(Context& context, Method<Request, Response> method, const Request& request, Print print,
                     const Asking& asking = {}) {
  Response answer;
  const auto ask_once = [&](const Client& client) -> Result<std::string> {
    auto answered = client.call(context, method, request, asking.within);
    if (!answered) return std::unexpected(answered.error());
    answer = *std::move(answered);
    if (context.format != Format::Table) return in_format(context.format, answer, asking.interval.count() > 0);
    std::ostringstream table;
    print(table, answer, context.table_look());
    return table.str();
  };
  if (const auto shown = show(context, asking, ask_once); !shown) return std::unexpected(shown.error());
  return answer;
}

/// Gives each event of the stream to `take`, until that fails, the stream ends, or SIGINT or SIGTERM comes.
[[nodiscard]] Result<void> read_events(Context& context, const v1::StreamEventsRequest& request,
                                       const std::function<Result<void>(const v1::Event&)>& take);

}  // namespace evictd::ctl
