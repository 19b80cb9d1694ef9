#include "api/tls.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "api/temporary_directory.hpp"
#include "kube/certificates.hpp"

namespace evictd::api::tls_test {
namespace {

using test::Authority;
using test::TemporaryDirectory;

const TlsOptions lists{.certificate_file = "",
                       .key_file = "",
                       .client_ca_file = "",
                       .admins = {"ops", "root.example"},
                       .readers = {"watcher"}};

/// A directory with good files; a test breaks one of them.
struct Files {
  Files() {
    write("server.pem", issued.certificate);
    write("server.key", issued.key);
    write("clients.pem", authority.certificate());
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(directory / name) << text; }
  [[nodiscard]] std::string error() const {
    const auto checked = check_tls(options);
    return checked ? "" : checked.error().message;
  }

  Authority authority;
  test::Issued issued = authority.issue();
  TemporaryDirectory directory;
  TlsOptions options{.certificate_file = directory / "server.pem",
                     .key_file = directory / "server.key",
                     .client_ca_file = directory / "clients.pem",
                     .admins = {},
                     .readers = {}};
};

TEST_CASE("files that fit together are good") { CHECK(Files().error() == ""); }

TEST_CASE("a file that TLS cannot work with is named with its key") {
  Files files;
  const auto certificate = files.directory / "server.pem";
  const auto key = files.directory / "server.key";
  const auto clients = files.directory / "clients.pem";
  files.write("clients.pem", "-----BEGIN nothing");
  CHECK(files.error() == "api.tcp.clientCaFile: " + clients + ": holds no certificate in PEM");
  files.write("server.key", files.authority.issue().key);
  CHECK(files.error() == "api.tcp.keyFile: " + key + " is not the key of the certificate in " + certificate);
  files.write("server.key", "");
  CHECK(files.error() ==
        "api.tcp.keyFile: " + key + ": holds no private key in PEM that can be read without a password");
  files.write("server.pem", files.issued.key);
  CHECK(files.error() == "api.tcp.certificateFile: " + certificate + ": holds no certificate in PEM");
  files.write("server.pem", files.issued.certificate + std::string(std::size_t{1} << 20, '\n'));
  CHECK(files.error() == "api.tcp.certificateFile: " + certificate + ": cannot be read: File too large");
  files.options.certificate_file = files.directory / "missing";
  CHECK(files.error() ==
        "api.tcp.certificateFile: " + (files.directory / "missing") + ": cannot be read: No such file or directory");
  files.options.certificate_file = files.directory / "fifo";
  REQUIRE(::mkfifo(files.options.certificate_file.c_str(), 0600) == 0);
  CHECK(files.error() == "api.tcp.certificateFile: " + (files.directory / "fifo") + ": cannot be read: Illegal seek");
  files.options.certificate_file = files.directory / ".";
  CHECK(files.error() == "api.tcp.certificateFile: " + (files.directory / ".") + ": cannot be read: Is a directory");
}

TEST_CASE("any name of a certificate counts, the one that may most") {
  const auto role = [](const CertificateNames& names) { return identify(names, "", lists).role; };
  CHECK(role({.common = {"ops"}}) == Role::Admin);
  CHECK(role({.dns = {"root.example"}}) == Role::Admin);
  CHECK(role({.common = {"watcher"}}) == Role::Reader);
  CHECK(role({.common = {"watcher"}, .dns = {"x", "root.example"}}) == Role::Admin);
  CHECK(role({.common = {"guest"}, .dns = {"x"}}) == Role::None);
  CHECK(role({}) == Role::None);
  // Names are taken as they are.
  for (const std::string other : {"OPS", "ops ", "", "*", "ops,watcher"})
    CHECK(role({.common = {other}}) == Role::None);
  CHECK(role({.common = {std::string("ops\0x", 5)}}) == Role::None);
}

TEST_CASE("a star among the readers is everybody, with a name or without") {
  TlsOptions open = lists;
  open.readers = {"*"};
  CHECK(identify({.common = {"guest"}}, "", open).role == Role::Reader);
  CHECK(identify({}, "", open).role == Role::Reader);
  CHECK(identify({.common = {"ops"}}, "", open).role == Role::Admin);
  open = lists;
  open.admins = {"*"};
  CHECK(identify({.common = {"guest"}}, "", open).role == Role::None);
}

TEST_CASE("a caller is called by the name that counts and by its address") {
  CHECK(identify({.common = {"ops"}}, "ipv4:10.0.0.7:4711", lists).name == "CN=ops, 10.0.0.7, api.tcp");
  CHECK(identify({.common = {"x"}, .dns = {"root.example"}}, "ipv6:%5B::1%5D:4711", lists).name ==
        "DNS=root.example, ::1, api.tcp");
  CHECK(identify({.common = {"watcher"}}, "", lists).remedy == "CN=watcher is not in api.tcp.admins");
  const auto guest = identify({.common = {"gu\nest\xff"}}, "ipv4:10.0.0.7:1", lists);
  CHECK(guest.name == "CN=gu?est?, 10.0.0.7, api.tcp");
  CHECK(guest.remedy == "neither api.tcp.readers nor api.tcp.admins names it");
  CHECK(identify({}, "", lists).name == "a certificate without a name (CN or DNS)");
}

}  // namespace
}  // namespace evictd::api::tls_test
