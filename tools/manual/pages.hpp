#pragma once
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace evictd::manual {

// What the documents say of the keys of an AgentConfiguration is written from their one table (config/agent_keys.hpp).

/// A manual page: the template with its VERSION put in, and the keys in the place of the line "@KEYS@", where it has
/// one.
[[nodiscard]] std::string page(std::string_view page_template, std::string_view version);

/// The README's table of all keys, Markdown.
[[nodiscard]] std::string readme_table();

/// The README with this table between the two comments that mark its place. An error where they are missing.
[[nodiscard]] Result<std::string> readme_with_table(std::string_view readme);

/// `text`, UTF-8, for running text of roff: what would begin a request, or an escape, does not. The result is ASCII.
[[nodiscard]] std::string roff(std::string_view text);

}  // namespace evictd::manual
