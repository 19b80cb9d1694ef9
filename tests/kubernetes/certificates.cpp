#include "certificates.hpp"

#include <utility>
#include <vector>

#include "testbed/process.hpp"

namespace kubernetes {

namespace fs = std::filesystem;

namespace {

KeyPair files(const fs::path& directory, const std::string& name) {
  return {.certificate = directory / (name + ".crt"), .key = directory / (name + ".key")};
}

/// A new key and its certificate, signed by itself unless `options` name an authority.
void make_certificate(const KeyPair& pair, const std::string& subject, const std::vector<std::string>& options) {
  std::vector<std::string> command{"openssl",
                                   "req",
                                   "-x509",
                                   "-newkey",
                                   "ec",
                                   "-pkeyopt",
                                   "ec_paramgen_curve:P-256",
                                   "-nodes",
                                   "-keyout",
                                   pair.key,
                                   "-out",
                                   pair.certificate,
                                   "-days",
                                   "2",
                                   "-subj",
                                   subject};
  command.insert(command.end(), options.begin(), options.end());
  testbed::run(command);
}

}  // namespace

Authority::Authority(fs::path directory) : directory_{std::move(directory)}, own_{files(directory_, "ca")} {
  make_certificate(own_, "/CN=evictd-test-ca", {"-addext", "keyUsage=critical,keyCertSign,cRLSign"});
}

KeyPair Authority::issue_server(const std::string& name) const {
  return issue(name, "/CN=" + name, "subjectAltName=IP:127.0.0.1,DNS:localhost");
}

KeyPair Authority::issue_client(const std::string& user, const std::string& group) const {
  return issue("client-" + user, "/O=" + group + "/CN=" + user, "extendedKeyUsage=clientAuth");
}

KeyPair Authority::issue(const std::string& name, const std::string& subject, const std::string& extension) const {
  auto pair = files(directory_, name);
  make_certificate(pair, subject,
                   {"-CA", own_.certificate, "-CAkey", own_.key, "-addext", "basicConstraints=critical,CA:FALSE",
                    "-addext", extension});
  return pair;
}

}  // namespace kubernetes
