#include "api/tls.hpp"

#include <evictd.grpc.pb.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "api/permission.hpp"
#include "core/printable.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "os/kept_file.hpp"

namespace evictd::api {
namespace {

/// Reading three small files costs nothing, and certificates are renewed long before the old one ends.
constexpr unsigned reload_seconds = 5;

constexpr std::string_view everybody = "*";

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Bytes = std::unique_ptr<BIO, decltype(&BIO_free)>;

/// No person is there to enter one; without this, OpenSSL would ask the terminal.
int no_password(char*, int, int, void*) { return -1; }

Bytes bytes_of(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

/// More than a chain of certificates ever has.
constexpr std::size_t largest_file = std::size_t{1} << 20;

Result<std::string> read_file(const std::string& path) {
  const auto failed = [&](int code) { return fail(fmt::format("{}: cannot be read: {}", path, os::reason(code))); };
  // Who opens a FIFO waits for its writer.
  struct stat found{};
  if (::stat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode)) return failed(ESPIPE);
  os::FileDescriptor opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!opened) return failed(errno);
  std::string buffer(largest_file, '\0');
  const auto text = os::KeptFile(std::move(opened), path).read(buffer);
  if (!text) return failed(text.error().code);
  buffer.resize(text->size());
  return buffer;
}

/// The first one in the file.
Result<Certificate> read_certificate(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  Certificate certificate{PEM_read_bio_X509(bytes_of(*text).get(), nullptr, &no_password, nullptr), &X509_free};
  ERR_clear_error();
  if (!certificate) return fail(fmt::format("{}: holds no certificate in PEM", path));
  return certificate;
}

Result<Key> read_key(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  Key key{PEM_read_bio_PrivateKey(bytes_of(*text).get(), nullptr, &no_password, nullptr), &EVP_PKEY_free};
  ERR_clear_error();
  if (!key) return fail(fmt::format("{}: holds no private key in PEM that can be read without a password", path));
  return key;
}

bool has(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

/// Of a client: what it chose for itself is not to break a line of the log, nor the encoding of an event.
constexpr std::size_t longest_name = 128;

Role role_of(std::string_view name, const TlsOptions& options) {
  if (has(options.admins, name)) return Role::Admin;
  return has(options.readers, name) || has(options.readers, everybody) ? Role::Reader : Role::None;
}

/// "10.0.0.7" of "ipv4:10.0.0.7:4711", "::1" of "ipv6:%5B::1%5D:4711".
std::string host_of(std::string_view peer) {
  peer = peer.substr(peer.find(':') + 1);
  peer = peer.substr(0, peer.rfind(':'));
  for (const std::string_view bracket : {"%5B", "["})
    if (peer.starts_with(bracket)) peer.remove_prefix(bracket.size());
  for (const std::string_view bracket : {"%5D", "]"})
    if (peer.ends_with(bracket)) peer.remove_suffix(bracket.size());
  return std::string(peer);
}

/// Health and reflection know no roles. What EvictionService is asked, it refuses itself: it tells of it, too.
class KnownClients final : public grpc::AuthMetadataProcessor {
 public:
  explicit KnownClients(TlsOptions options) : options_(std::move(options)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const auto path = metadata.find(":path");
    if (path != metadata.end() && path->second.starts_with(own_service_)) return grpc::Status::OK;
    return permit(identify(names_of(*context), "", options_), Access::Look, "this call");
  }

 private:
  TlsOptions options_;
  std::string own_service_ = fmt::format("/{}/", v1::EvictionService::service_full_name());
};

}  // namespace

Result<void> check_tls(const TlsOptions& options) {
  const auto certificate = read_certificate(options.certificate_file);
  if (!certificate) return fail(certificate.error(), "api.tcp.certificateFile");
  const auto key = read_key(options.key_file);
  if (!key) return fail(key.error(), "api.tcp.keyFile");
  const bool fits = X509_check_private_key(certificate->get(), key->get()) == 1;
  ERR_clear_error();
  if (!fits)
    return fail(fmt::format("api.tcp.keyFile: {} is not the key of the certificate in {}", options.key_file,
                            options.certificate_file));
  if (const auto authority = read_certificate(options.client_ca_file); !authority)
    return fail(authority.error(), "api.tcp.clientCaFile");
  return {};
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const TlsOptions& options) {
  const auto files = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      options.key_file, options.certificate_file, options.client_ca_file, reload_seconds);
  grpc::experimental::TlsServerCredentialsOptions tls(files);
  tls.watch_root_certs();
  tls.watch_identity_key_cert_pairs();
  tls.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  auto credentials = grpc::experimental::TlsServerCredentials(tls);
  credentials->SetAuthMetadataProcessor(std::make_shared<KnownClients>(options));
  return credentials;
}

CertificateNames names_of(const grpc::AuthContext& certificate) {
  const auto values = [&](const char* property) {
    std::vector<std::string> found;
    for (const auto& value : certificate.FindPropertyValues(property)) found.emplace_back(value.begin(), value.end());
    return found;
  };
  return {.common = values(GRPC_X509_CN_PROPERTY_NAME), .dns = values(GRPC_PEER_DNS_PROPERTY_NAME)};
}

Caller identify(const CertificateNames& names, std::string_view peer, const TlsOptions& options) {
  Caller caller{.role = has(options.readers, everybody) ? Role::Reader : Role::None,
                .name = "a certificate without a name (CN or DNS)"};
  bool is_named = false;
  const auto consider = [&](std::string_view kind, const std::vector<std::string>& list) {
    for (const auto& name : list) {
      const auto role = role_of(name, options);
      if (is_named && role <= caller.role) continue;
      is_named = true;
      caller.role = role;
      caller.name = fmt::format("{}={}", kind, core::printable_ascii(name, longest_name));
    }
  };
  consider("CN", names.common);
  consider("DNS", names.dns);
  caller.account = caller.name;
  if (caller.role == Role::Reader) caller.remedy = caller.name + " is not in api.tcp.admins";
  if (caller.role == Role::None) caller.remedy = "neither api.tcp.readers nor api.tcp.admins names it";
  if (!peer.empty()) caller.name += fmt::format(", {}, api.tcp", host_of(peer));
  return caller;
}

}  // namespace evictd::api
