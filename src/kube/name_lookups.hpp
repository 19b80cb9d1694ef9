#pragma once
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "async/side_thread.hpp"
#include "core/error.hpp"
#include "kube/url.hpp"

namespace evictd::kube {

using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

/// Look-ups of names by the system's resolver, which cannot be interrupted. Each has a thread of its own, since Asio
/// asks for all names from a single one: a name that nobody answers for would hold up every other, and evictd's end.
/// For the reactor's thread.
class NameLookups {
 public:
  /// `most`: how many may be under way, those included that nobody waits for any more.
  explicit NameLookups(std::size_t most) : most_{most} {}

  /// Begins one; `done` is called with the addresses, or with an error, for as long as what this returns is kept. It is
  /// to be dropped before the reactor's context. Error: too many are under way, or no thread can be had.
  [[nodiscard]] Result<std::unique_ptr<async::SideThread>> begin(
      const boost::asio::any_io_executor& reactor, const Server& server,
      std::move_only_function<void(Result<Endpoints>&&)> done);

 private:
  std::size_t most_;
  std::shared_ptr<std::atomic<std::size_t>> under_way_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace evictd::kube
