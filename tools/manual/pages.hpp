#pragma once
#include <string>
#include <string_view>

namespace evictd::manual {

/// A manual page from a template in roff: with the version for "@VERSION@", and for the line "@KEYS@" what the one
/// table of an AgentConfiguration's keys says of each (config/agent_keys.hpp).
[[nodiscard]] std::string page(std::string_view page_template, std::string_view version);

/// `text`, UTF-8, for running text of roff: what would begin a request, or an escape, does not. The result is ASCII.
[[nodiscard]] std::string roff(std::string_view text);

}  // namespace evictd::manual
