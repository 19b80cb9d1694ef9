#include "kube/credentials.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::kube::credentials_test {

namespace kube = evictd::kube;
using evictd::fixture::error_of;
using evictd::fixture::file;
using evictd::fixture::Tree;
using evictd::fixture::value_of;

TEST_CASE("a pod's service account: the address from the environment, token and authority in files") {
  const Tree tree{{file("token", "t\n"), file("ca.crt", "c"), file("namespace", "kube-system")}};
  const auto credentials = value_of(kube::service_account_credentials("10.96.0.1", "443", tree.path()));
  CHECK(credentials.server == kube::Server{.tls = true, .host = "10.96.0.1", .port = "443"});
  CHECK(credentials.token.file == tree.path("token"));
  CHECK(credentials.authorities.file == tree.path("ca.crt"));
  CHECK(credentials.name_space == "kube-system");
  CHECK(value_of(kube::service_account_credentials("fd00::1", "443", tree.path())).server.url() ==
        "https://[fd00::1]:443");

  tree.remove("namespace");
  CHECK(value_of(kube::service_account_credentials("10.96.0.1", "443", tree.path())).name_space.empty());
}

TEST_CASE("without a pod or a service account there is nothing to use") {
  const Tree tree{file("ca.crt", "c")};
  CHECK(error_of(kube::service_account_credentials("", "", tree.path())) ==
        "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  CHECK(error_of(kube::service_account_credentials("10.96.0.1", "port", tree.path())) ==
        "KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT: \"https://10.96.0.1:port\" is no server's URL: its port "
        "must be a "
        "number from 1 to 65535");
  CHECK(error_of(kube::service_account_credentials("10.96.0.1", "443", tree.path())) ==
        tree.path("token").string() + ": is missing: has the pod a service account with automountServiceAccountToken?");
}

TEST_CASE("a server named by its URL gets a token over https alone") {
  const auto credentials = value_of(kube::url_credentials("https://node:10250", "/t", "/c"));
  CHECK(credentials.server.url() == "https://node:10250");
  CHECK(credentials.token.file == "/t");
  CHECK(credentials.authorities.file == "/c");
  CHECK_FALSE(value_of(kube::url_credentials("http://127.0.0.1:10255", "", "")).token.is_given());
  CHECK(error_of(kube::url_credentials("http://127.0.0.1:10255", "/t", "")) ==
        "http://127.0.0.1:10255: a token or client certificate needs https: over http anyone could read it");
  CHECK(error_of(kube::url_credentials("node:10250", "", "")).starts_with("\"node:10250\" is no server's URL: "));
}

}  // namespace evictd::kube::credentials_test
