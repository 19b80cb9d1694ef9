#pragma once
#include <string>

namespace evictd::web {

/// Logs why the work for a client was given up, such as a lack of memory. Once a minute at most: the client may come
/// back at once. On the reactor.
void warn_of_client_failure(const std::string& reason);

}  // namespace evictd::web
