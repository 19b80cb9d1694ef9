#pragma once
#include <filesystem>
#include <string>

namespace kubernetes {

struct KeyPair {
  std::filesystem::path certificate;
  std::filesystem::path key;
};

/// A certificate authority of a test's own, by the program openssl. Everything is PEM, of elliptic curve P-256, and
/// valid for two days.
class Authority {
 public:
  /// Its files go into `directory`, which must exist.
  explicit Authority(std::filesystem::path directory);

  /// What clients trust.
  [[nodiscard]] const std::filesystem::path& certificate() const { return own_.certificate; }
  /// For a server on 127.0.0.1; `name` is that of its files.
  [[nodiscard]] KeyPair issue_server(const std::string& name) const;
  /// For a client, whom Kubernetes knows as this user of this group.
  [[nodiscard]] KeyPair issue_client(const std::string& user, const std::string& group) const;

 private:
  [[nodiscard]] KeyPair issue(const std::string& name, const std::string& subject, const std::string& extension) const;

  std::filesystem::path directory_;
  KeyPair own_;
};

}  // namespace kubernetes
