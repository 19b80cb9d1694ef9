#include "kube/identity.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace evictd::kube {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// How an error line names it.
std::string name_of(const Material& material, std::string_view what) {
  return material.file.empty() ? fmt::format("the {}", what) : material.file.string();
}

/// One that could break out of its header field, or is a file's worth of something else, is none.
Result<std::string> read_token(const Material& material) {
  auto text = material.read();
  if (!text || !material.is_given()) return text;
  const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text->empty() && is_blank(text->back())) text->pop_back();
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f'; };
  constexpr std::size_t longest = 32768;
  if (text->empty()) return fail(name_of(material, "token") + ": holds no token");
  if (text->size() > longest || !std::ranges::all_of(*text, is_plain))
    return fail(name_of(material, "token") + ": holds something else than a token");
  return text;
}

Result<TlsMaterial> read_material(const Credentials& credentials) {
  TlsMaterial material;
  for (const auto& [from, to] : {std::pair{&credentials.authorities, &material.authorities},
                                 std::pair{&credentials.client_certificate, &material.client_certificate},
                                 std::pair{&credentials.client_key, &material.client_key}}) {
    auto text = from->read();
    if (!text) return std::unexpected(text.error());
    *to = *std::move(text);
  }
  return material;
}

Result<void> trust(asio::ssl::context& context, const Credentials& credentials, const TlsMaterial& material) {
  error_code error;
  // A root may itself be signed by another one that is not in the file: what is given is trusted, as in Go.
  X509_STORE_set_flags(SSL_CTX_get_cert_store(context.native_handle()), X509_V_FLAG_PARTIAL_CHAIN);
  if (!credentials.authorities.is_given()) {
    context.set_default_verify_paths(error);
    if (error) return fail("the system's certificate store cannot be read: " + error.message());
    return {};
  }
  context.add_certificate_authority(asio::buffer(material.authorities), error);
  if (error || !material.authorities.contains("-----BEGIN CERTIFICATE-----"))
    return fail(name_of(credentials.authorities, "certificate authority") + ": holds no PEM certificates");
  return {};
}

Result<void> introduce_us(asio::ssl::context& context, const Credentials& credentials, const TlsMaterial& material) {
  if (!credentials.client_certificate.is_given()) return {};
  error_code error;
  // OpenSSL would ask a terminal for the passphrase of an encrypted key.
  context.set_password_callback([](std::size_t, asio::ssl::context::password_purpose) { return std::string(); }, error);
  context.use_certificate_chain(asio::buffer(material.client_certificate), error);
  if (error) return fail(name_of(credentials.client_certificate, "client certificate") + ": holds no PEM certificate");
  context.use_private_key(asio::buffer(material.client_key), asio::ssl::context::pem, error);
  if (error)
    return fail(fmt::format("{}: holds no unencrypted PEM key that fits the client certificate ({})",
                            name_of(credentials.client_key, "client key"), error.message()));
  return {};
}

Result<std::shared_ptr<asio::ssl::context>> make_context(const Credentials& credentials, const TlsMaterial& material) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  error_code error;
  context->set_verify_mode(asio::ssl::verify_peer, error);
  if (error) return fail("OpenSSL: " + error.message());
  if (const auto done = trust(*context, credentials, material); !done) return std::unexpected(done.error());
  if (const auto done = introduce_us(*context, credentials, material); !done) return std::unexpected(done.error());
  return context;
}

}  // namespace

Result<IdentityPtr> read_identity(const Credentials& credentials, const IdentityPtr& previous) {
  auto token = read_token(credentials.token);
  if (!token) return std::unexpected(token.error());
  if (!credentials.server.tls) return std::make_shared<const Identity>(Identity{.token = *std::move(token)});

  auto material = read_material(credentials);
  if (!material) return std::unexpected(material.error());
  std::shared_ptr<asio::ssl::context> tls;
  if (previous && previous->tls && previous->material == *material) {
    tls = previous->tls;
  } else {
    auto made = make_context(credentials, *material);
    if (!made) return std::unexpected(made.error());
    tls = *std::move(made);
  }
  return std::make_shared<const Identity>(
      Identity{.token = *std::move(token), .material = *std::move(material), .tls = std::move(tls)});
}

}  // namespace evictd::kube
