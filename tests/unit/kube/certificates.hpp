#pragma once
#include <openssl/types.h>

#include <chrono>
#include <memory>
#include <string>

namespace evictd::test {

/// PEM texts.
struct Issued {
  std::string certificate{};
  std::string key{};
};

struct Wanted {
  std::string names = "IP:127.0.0.1,DNS:localhost";  ///< subjectAltName, as OpenSSL writes it; empty: none
  std::chrono::seconds valid_from{-3600};            ///< from now on
  std::chrono::seconds valid_until{3600};
  std::string common_name = "test";
};

/// A certificate authority made on the spot. It lives as long as the test does.
class Authority {
 public:
  explicit Authority(const std::string& name = "test authority");

  [[nodiscard]] const std::string& certificate() const { return certificate_; }
  [[nodiscard]] Issued issue(const Wanted& wanted = {}) const;

 private:
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> x509_;
  std::string certificate_;
};

}  // namespace evictd::test
