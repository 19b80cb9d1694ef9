#include <doctest/doctest.h>

#include <string>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "kube/credentials.hpp"

namespace evictd::kube::kubeconfig_test {

namespace kube = evictd::kube;
using evictd::fixture::error_of;
using evictd::fixture::file;
using evictd::fixture::Tree;
using evictd::fixture::value_of;

namespace {

/// A kubeconfig of twenty lines; `cluster` and `user` are lines 7 and 16, the rest is there to be looked past.
std::string kubeconfig(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\n"
         "kind: Config\n"
         "preferences: {}\n"
         "clusters:\n"
         "- {name: other, cluster: {insecure-skip-tls-verify: true}}\n"
         "- name: main\n"
         "  cluster: " +
         cluster +
         "\n"
         "contexts:\n"
         "- name: other\n"
         "  context: {cluster: other, user: other}\n"
         "- name: main\n"
         "  context: {cluster: main, user: node, namespace: here}\n"
         "current-context: main\n"
         "users:\n"
         "- name: node\n"
         "  user: " +
         user +
         "\n"
         "- {name: other, user: {exec: {command: x}}}\n";
}

const std::string server = "server: 'https://api:6443'";

/// Reads it from a file; the error is without the file's directory.
struct Fixture {
  Tree tree{};

  evictd::Result<kube::Credentials> read(const std::string& text) {
    tree.add("", file("config", text));
    return kube::kubeconfig_credentials(tree.path("config"));
  }
  evictd::Result<kube::Credentials> read(const std::string& cluster, const std::string& user) {
    return read(kubeconfig(cluster, user));
  }
  template <class... Texts>
  std::string error(const Texts&... texts) {
    const auto message = error_of(read(texts...));
    const auto directory = tree.path().string() + "/";
    return message.starts_with(directory) ? message.substr(directory.size()) : message;
  }
};

}  // namespace

TEST_CASE("the current context says which cluster and which user") {
  Fixture f;
  const auto credentials =
      value_of(f.read("{" + server + ", certificate-authority: pki/ca.crt, tls-server-name: api.example.org}",
                      "{client-certificate: /etc/node.crt, client-key: node.key}"));
  CHECK(credentials.server.url() == "https://api:6443");
  CHECK(credentials.tls_server_name == "api.example.org");
  CHECK(credentials.authorities.file == f.tree.path("pki/ca.crt"));
  CHECK(credentials.client_certificate.file == "/etc/node.crt");
  CHECK(credentials.client_key.file == f.tree.path("node.key"));
  CHECK(credentials.name_space == "here");
  CHECK_FALSE(credentials.token.is_given());
}

TEST_CASE("what stands in the file itself is decoded, and wins over a file's name") {
  Fixture f;
  const auto credentials = value_of(f.read(
      "{" + server + ", certificate-authority: ca.crt, certificate-authority-data: Y2VydGlmaWNhdGU=}",
      "{client-certificate: a, client-certificate-data: YQ==, client-key: b, client-key-data: \"YmJi\\nYg==\"}"));
  CHECK(credentials.authorities.text == "certificate");
  CHECK(credentials.authorities.file.empty());
  CHECK(credentials.client_certificate.text == "a");
  CHECK(credentials.client_certificate.file.empty());
  CHECK(credentials.client_key.text == "bbbb");
}

TEST_CASE("a token stands in the file or in another one, and the other one wins") {
  Fixture f;
  CHECK(value_of(f.read("{" + server + "}", "{token: secret}")).token.text == "secret");
  const auto both = value_of(f.read("{" + server + "}", "{token: secret, tokenFile: token}"));
  CHECK(both.token.file == f.tree.path("token"));
  f.tree.add("", file("token", "newer"));
  CHECK(value_of(both.token.read()) == "newer");
}

TEST_CASE("what evictd cannot do, or will not, is refused with its place") {
  Fixture f;
  const auto user = [&](const std::string& key) { return f.error("{" + server + "}", "{" + key + "}"); };
  const auto cluster = [&](const std::string& key) { return f.error("{" + server + ", " + key + "}", "{token: x}"); };
  const std::string hint = "is not supported by evictd: use a token, a token file or a client certificate";
  CHECK(user("exec: {command: aws}") == "config:16: users[0].user.exec: " + hint);
  CHECK(user("auth-provider: {name: gcp}") == "config:16: users[0].user.auth-provider: " + hint);
  CHECK(user("username: a") == "config:16: users[0].user.username: " + hint);
  CHECK(user("as: admin") == "config:16: users[0].user.as: " + hint);
  CHECK(cluster("proxy-url: http://p") == "config:7: clusters[1].cluster.proxy-url: is not supported by evictd");
  CHECK(cluster("insecure-skip-tls-verify: true") ==
        "config:7: clusters[1].cluster.insecure-skip-tls-verify: is not supported: the server's certificate is always "
        "checked");
  CHECK(
      f.read("{" + server + ", insecure-skip-tls-verify: false, disable-compression: true}", "{token: x}").has_value());
}

TEST_CASE("what is missing or wrong is said with its place") {
  Fixture f;
  const auto cluster = [&](const std::string& text) { return f.error("{" + text + "}", "{token: x}"); };
  CHECK(cluster("") == "config:7: clusters[1].cluster: has no server");
  CHECK(cluster("server: api") ==
        "config:7: clusters[1].cluster.server: \"api\" is no server's URL: it must begin with https:// or http://");
  CHECK(cluster(server + ", certificate-authority-data: '***'") ==
        "config:7: clusters[1].cluster.certificate-authority-data: is not base64");
  CHECK(cluster("server: http://api") ==
        "config: http://api:80: a token or client certificate needs https: over http anyone could read it");
  CHECK(
      f.error("{" + server + "}", "{client-certificate: a}") ==
      "config: https://api:6443: a client certificate needs its key and a key its certificate; only the certificate is "
      "given");
  CHECK(f.error("{" + server + "}", "~") == "config:15: users[0]: has no user");

  CHECK(f.error("") == "config:1: nothing stands where a mapping is expected");
  CHECK(f.error("apiVersion: v1\nkind: Pod\n").starts_with("config:2: kind: "));
  CHECK(f.error("apiVersion: v1\nkind: Config\n") == "config:1: current-context is missing");
  CHECK(f.error("apiVersion: v1\nkind: Config\ncurrent-context: a\n") == "config:1: contexts is missing");
  CHECK(f.error("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: []\n") ==
        "config:4: contexts: none of them is called \"a\"");
  CHECK(f.error("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts:\n- {name: a, context: {user: b}}\n") ==
        "config:5: contexts[0].context: has no cluster");
  CHECK(error_of(kube::kubeconfig_credentials("/nowhere/config")) ==
        "/nowhere/config: cannot be read: No such file or directory");
}

}  // namespace evictd::kube::kubeconfig_test
