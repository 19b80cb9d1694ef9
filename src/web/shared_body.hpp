#pragma once
#include "web/server.hpp"

namespace evictd::web {

/// A document's body that is made once for all who ask for it meanwhile, however many that are: clients that ask and do
/// not wait for the answer make no more work than one. What `make` throws all of them get. On the reactor.
[[nodiscard]] decltype(Document::body) share_body(decltype(Document::body) make);

}  // namespace evictd::web
