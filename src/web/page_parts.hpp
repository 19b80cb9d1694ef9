#pragma once
#include <string_view>

namespace evictd::web {

// src/web/page, as it was built in.
extern const std::string_view page_html;  ///< with an empty <style></style> and <script></script>
extern const std::string_view page_css;
extern const std::string_view page_js;

}  // namespace evictd::web
