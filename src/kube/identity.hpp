#pragma once
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "kube/credentials.hpp"

// For the sources of this folder: it brings in OpenSSL's headers.
namespace evictd::kube {

/// PEM texts of one moment.
struct TlsMaterial {
  std::string authorities{};
  std::string client_certificate{};
  std::string client_key{};

  friend bool operator==(const TlsMaterial&, const TlsMaterial&) = default;
};

/// Credentials as their files said at one moment, ready for use.
struct Identity {
  std::string token{};  ///< empty: none
  TlsMaterial material{};
  std::shared_ptr<boost::asio::ssl::context> tls{};  ///< null for a plain http server

  /// Whether the server could take it for someone else than the other one.
  [[nodiscard]] bool differs_from(const Identity& other) const {
    return token != other.token || material != other.material;
  }
};
using IdentityPtr = std::shared_ptr<const Identity>;

/// Reads the files. What did not change since `previous` (may be null) is taken over. Blocks: 0.2 ms with one
/// authority, 20 ms of processor time with the system's certificate store.
[[nodiscard]] Result<IdentityPtr> read_identity(const Credentials& credentials, const IdentityPtr& previous);

}  // namespace evictd::kube
