#pragma once
#include <string>

namespace evictd::web {

/// The status page: one file, with nothing to fetch but its stream, /events.
struct Page {
  std::string html;
  /// The Content-Security-Policy that lets this very page run and nothing else: its own style and script, by their
  /// hashes, and connections to where it came from.
  std::string security_policy;
};

[[nodiscard]] Page make_page();

}  // namespace evictd::web
