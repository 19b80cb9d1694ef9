#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <vector>

#include "evict/kill_hooks.hpp"
#include "prekill/socket_directory.hpp"

namespace evictd::prekill {

/// Asks the hooks of systemd-oomd (systemd 260): those that listen at Varlink sockets in a directory. On the reactor;
/// must be destroyed before the io_context.
class SocketHooks final : public evict::KillHooks {
 public:
  SocketHooks(const boost::asio::any_io_executor& reactor, SocketDirectoryOptions options)
      : directory_{reactor, std::move(options)} {}

  [[nodiscard]] bool has_any() const override { return !directory_.names().empty(); }
  [[nodiscard]] boost::asio::awaitable<void> ask(evict::KillIntent intent) override;

 private:
  SocketDirectory directory_;
};

}  // namespace evictd::prekill
