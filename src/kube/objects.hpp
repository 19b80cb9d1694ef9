#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace evictd::kube {

/// One page of a list, each object as a JSON text of its own, without its metadata.managedFields: they make up a third
/// to a half of a pod and tell only who wrote what.
struct ListPage {
  std::string resource_version{};
  std::string continue_token{};  ///< empty: the last page
  std::vector<std::string> objects{};
};

/// The body of a list's answer. 1 MiB takes 6 ms of processor time.
[[nodiscard]] Result<ListPage> parse_list(std::string_view text);

struct WatchEvent {
  enum class Kind { Upserted, Deleted, Bookmark, Failed };
  Kind kind = Kind::Failed;
  std::string resource_version{};  ///< of the object; empty for Failed
  std::string object{};            ///< JSON, as in ListPage; for Upserted and Deleted
  int code = 0;                    ///< Failed: the Status object's code, as an HTTP status
  std::string message{};           ///< Failed: its message
};

/// One line of a watch's answer (meta/v1 WatchEvent). Error: it is none, or has no resourceVersion to go on from.
[[nodiscard]] Result<WatchEvent> parse_watch_event(std::string_view text);

}  // namespace evictd::kube
