#pragma once
#include <boost/asio/awaitable.hpp>

#include "cri/client.hpp"

namespace evictd::cri {

/// Goes once the way that a kill goes: StopContainer on a container that does not exist, which no runtime can take for
/// one that does. So the connection stands, and the code of HTTP/2 and protobuf that it takes is in memory (and stays
/// there, see host/self_protection.hpp), before the node is short of it. For each time the runtime appears; what it
/// answers does not matter.
[[nodiscard]] boost::asio::awaitable<void> warm_up(Client& client);

}  // namespace evictd::cri
