#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "kube/identity.hpp"
#include "kube/name_lookups.hpp"
#include "kube/url.hpp"

// For the sources of this folder: it brings in OpenSSL's headers.
namespace evictd::kube {

/// One connection to a server, plain or TLS. Every operation ends at the latest at its deadline; an error, a deadline
/// missed and close() end the connection for good. Errors say what went wrong, not where: the client knows that. For
/// the reactor's thread, one operation at a time.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Looks the name up, connects (to one address after the other), and over TLS shakes hands and checks the server's
  /// certificate. Call it first, once.
  virtual boost::asio::awaitable<Result<void>> open(core::Instant end) = 0;
  /// Writes all of it.
  virtual boost::asio::awaitable<Result<void>> write(std::string_view bytes, core::Instant end) = 0;
  /// At least one byte, or 0 where the server has ended the connection properly.
  virtual boost::asio::awaitable<Result<std::size_t>> read_some(std::span<char> buffer, core::Instant end) = 0;

  /// Whether it can take another request: still open, and nothing came without a request.
  [[nodiscard]] virtual bool is_idle() = 0;
  /// What is under way fails. May be called at any time and more than once.
  virtual void close() = 0;
};

/// `lookups`: those that count together. `identity.tls` decides between plain and TLS. `tls_server_name`: the name to
/// ask for and to find in the certificate; empty: the server's host.
[[nodiscard]] std::shared_ptr<Transport> make_transport(boost::asio::any_io_executor reactor, NameLookups lookups,
                                                        Server server, std::string tls_server_name,
                                                        IdentityPtr identity);

}  // namespace evictd::kube
