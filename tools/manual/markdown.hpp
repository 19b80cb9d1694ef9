#pragma once
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace evictd::manual {

/// A Markdown page of this folder as a manual page of section 7, roff. `name` is the page's own, such as "evictd-node".
///
/// The pages keep to a part of Markdown, and anything else is an error that names its line: a title ("# …", in the
/// first line), headings of two levels below it, paragraphs, lists of one level ("- …"; an item that begins with
/// "**term**: " is a definition), tables, fenced code, and inside a line `code`, **bold** and [links](target).
/// A link to another page of the manual becomes its name and section.
[[nodiscard]] Result<std::string> page_from_markdown(std::string_view markdown, std::string_view name,
                                                     std::string_view version);

}  // namespace evictd::manual
