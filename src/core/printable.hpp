#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace evictd::core {

/// One line that is safe for a log and a terminal, and is UTF-8: control characters, line ends, those that turn the
/// direction of writing, and bytes that are no UTF-8 become \n, \x1b, \u202e, \xff. The same again changes nothing.
[[nodiscard]] std::string printable(std::string_view text);

/// The first `most` bytes, with "?" for each that is not printable ASCII: for what takes nothing else, such as a label
/// of a metric.
[[nodiscard]] std::string printable_ascii(std::string_view text, std::size_t most);

/// Where the first byte is that is no UTF-8 (overlong forms and surrogates are none); the text's size if all is.
[[nodiscard]] std::size_t valid_utf8(std::string_view text);

/// At most so many bytes of a text in UTF-8, and no part of a character.
[[nodiscard]] std::string_view beginning(std::string_view text, std::size_t most);

/// As printable(), for a message that repeats what somebody else wrote: of more than `most` bytes the beginning and
/// "…", at a cost that does not grow with the text.
[[nodiscard]] std::string excerpt(std::string_view text, std::size_t most = 256);

}  // namespace evictd::core
