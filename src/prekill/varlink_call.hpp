#pragma once
#include <boost/asio/awaitable.hpp>
#include <string>

#include "core/duration.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::prekill {

/// Tells a hook of the cgroup that is about to be killed and waits for its answer, until `until`. Yields what came of
/// it as evict::HookAnswer has it. Whatever the hook sends or does not send costs no more than that time, and 64 KiB.
/// May be cancelled. On the reactor.
///
/// `connection`: a stream socket that does not block; it is closed at the end.
[[nodiscard]] boost::asio::awaitable<std::string> notify_hook(os::FileDescriptor connection, std::string cgroup,
                                                              core::Instant until);

}  // namespace evictd::prekill
