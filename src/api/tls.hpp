#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/caller.hpp"
#include "core/error.hpp"

namespace grpc {
class AuthContext;
class ServerCredentials;
}  // namespace grpc

namespace evictd::api {

/// `api.tcp`: the API over TCP with mutual TLS.
struct TlsOptions {
  std::string certificate_file;
  std::string key_file;
  std::string client_ca_file;
  std::vector<std::string> admins;   ///< names in client certificates: CN or DNS
  std::vector<std::string> readers;  ///< "*": every client whose certificate is good
};

/// Whether TLS can work with these files as they are: they can be read, hold what they should, and the key is the
/// certificate's. The error names the key of the configuration.
[[nodiscard]] Result<void> check_tls(const TlsOptions& options);

/// Client certificates are asked for and verified. The files are read anew every few seconds, by a thread of gRPC's;
/// what cannot be read changes nothing. Calls to other services than EvictionService, which has its own rules, are
/// refused where the client is nobody.
[[nodiscard]] std::shared_ptr<grpc::ServerCredentials> server_credentials(const TlsOptions& options);

/// The names in a verified client certificate.
struct CertificateNames {
  std::vector<std::string> common{};
  std::vector<std::string> dns{};
};

[[nodiscard]] CertificateNames names_of(const grpc::AuthContext& certificate);

/// Who the client is. `peer` is what gRPC says of its address: "ipv4:10.0.0.7:4711".
[[nodiscard]] Caller identify(const CertificateNames& names, std::string_view peer, const TlsOptions& options);

}  // namespace evictd::api
