#include "kube/credentials.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>
#include <utility>

#include "config/yaml.hpp"

namespace evictd::kube {

Result<std::string> Material::read() const {
  if (file.empty()) return text;
  return config::read_text_file(file);
}

Result<void> check(const Credentials& credentials) {
  const bool has_secret = credentials.token.is_given() || credentials.client_certificate.is_given();
  if (!credentials.server.tls && has_secret)
    return fail(credentials.server.url() +
                ": a token or client certificate needs https: over http anyone could read it");
  if (credentials.client_certificate.is_given() != credentials.client_key.is_given())
    return fail(fmt::format("{}: a client certificate needs its key and a key its certificate; only the {} is given",
                            credentials.server.url(), credentials.client_key.is_given() ? "key" : "certificate"));
  return {};
}

Result<Credentials> service_account_credentials(std::string_view host, std::string_view port,
                                                const std::filesystem::path& directory) {
  if (host.empty() || port.empty())
    return fail("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  const bool is_ipv6 = host.contains(':');
  auto server = parse_url(fmt::format("https://{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port));
  if (!server) return fail(server.error(), "KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT");

  Credentials credentials;
  credentials.server = *std::move(server);
  credentials.token.file = directory / "token";
  credentials.authorities.file = directory / "ca.crt";
  std::error_code error;
  for (const auto& file : {credentials.token.file, credentials.authorities.file})
    if (!std::filesystem::exists(file, error))
      return fail(file.string() + ": is missing: has the pod a service account with automountServiceAccountToken?");
  if (const auto name_space = config::read_text_file(directory / "namespace")) credentials.name_space = *name_space;
  return credentials;
}

Result<Credentials> service_account_credentials(const std::filesystem::path& directory) {
  const auto variable = [](const char* name) {
    const auto* value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  return service_account_credentials(variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT"),
                                     directory);
}

Result<Credentials> url_credentials(std::string_view url, const std::filesystem::path& token_file,
                                    const std::filesystem::path& authorities_file) {
  auto server = parse_url(url);
  if (!server) return std::unexpected(server.error());
  Credentials credentials;
  credentials.server = *std::move(server);
  credentials.token.file = token_file;
  credentials.authorities.file = authorities_file;
  if (const auto checked = check(credentials); !checked) return std::unexpected(checked.error());
  return credentials;
}

}  // namespace evictd::kube
