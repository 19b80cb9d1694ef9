#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "kube/url.hpp"

namespace evictd::kube {

/// A secret or a certificate: text that is known, or a file to read it from each time it is needed, since whoever
/// issues it replaces it now and then.
struct Material {
  std::string text{};
  std::filesystem::path file{};  ///< where it is set, `text` does not count

  [[nodiscard]] bool is_given() const { return !text.empty() || !file.empty(); }
  /// The text, or the file's; empty if nothing is given. Error: "FILE: cannot be read: …". Blocks on the disk.
  [[nodiscard]] Result<std::string> read() const;
};

/// Where the API server is, how to know it, and who we are to it. Nothing is checked against the server here.
struct Credentials {
  Server server{};
  std::string tls_server_name{};  ///< the name in the server's certificate; empty: server.host
  Material authorities{};         ///< PEM certificates that may have signed the server's; not given: the system's store
  Material token{};               ///< bearer token
  Material client_certificate{};  ///< PEM, with the chain behind it
  Material client_key{};          ///< PEM, without a passphrase
  std::string name_space{};       ///< of the service account or of the context; may be empty
};

/// A kubeconfig's current context (Kubernetes v1.Config as client-go reads it). Files named in it are relative to its
/// directory. Of the cluster: server, certificate-authority(-data), tls-server-name; of the user: token, tokenFile,
/// client-certificate(-data), client-key(-data). Where both forms are given, data wins over a file and tokenFile over
/// token, as in client-go. Whatever else the chosen entries hold (exec, auth-provider, proxy-url,
/// insecure-skip-tls-verify, username, …) is an error "FILE:LINE: KEY: …" and not ignored: it would be needed to get
/// in, or it weakens the connection.
[[nodiscard]] Result<Credentials> kubeconfig_credentials(const std::filesystem::path& path);

/// Where a pod finds its service account.
inline constexpr std::string_view service_account_directory = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What every pod gets: host and port as KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT name them; "token",
/// "ca.crt" and, if it is there, "namespace" in the directory.
[[nodiscard]] Result<Credentials> service_account_credentials(std::string_view host, std::string_view port,
                                                              const std::filesystem::path& directory);
/// The same with host and port from this process's environment. Error: it runs in no pod.
[[nodiscard]] Result<Credentials> service_account_credentials(
    const std::filesystem::path& directory = service_account_directory);

/// A server named by its URL, such as a kubelet. Empty paths: no token, the system's certificate store.
[[nodiscard]] Result<Credentials> url_credentials(std::string_view url, const std::filesystem::path& token_file,
                                                  const std::filesystem::path& authorities_file);

/// What the three above have in common: a token or a client certificate never goes over plain http, and a certificate
/// comes with its key.
[[nodiscard]] Result<void> check(const Credentials& credentials);

}  // namespace evictd::kube
