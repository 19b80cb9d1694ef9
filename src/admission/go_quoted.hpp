#pragma once
#include <string>
#include <string_view>

namespace evictd::admission {

/// The text in double quotes, the way Go prints it with %q: quotes, backslashes and control characters are escaped.
[[nodiscard]] std::string go_quoted(std::string_view text);

}  // namespace evictd::admission
