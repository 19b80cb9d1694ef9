#pragma once
#include <string>

#include "core/error.hpp"

namespace evictd::ctl {

/// PEM files for an agent that is asked over TCP.
struct TlsFiles {
  std::string ca;           ///< who may have signed the agent's certificate
  std::string certificate;  ///< ours
  std::string key;
};

/// The socket that an address names: "unix:///run/evictd/evictd.sock", "unix:/run/…" or the bare path.
[[nodiscard]] Result<std::string> socket_of(const std::string& address);

/// Whether it is HOST:PORT.
[[nodiscard]] bool is_tcp(const std::string& address);

/// Whether it is either, with the files that go with it. The error names the options.
[[nodiscard]] Result<void> check_address(const std::string& address, const TlsFiles& files);

/// Where a change is asked for: admin.sock beside the socket, if there is one, otherwise the socket itself.
[[nodiscard]] std::string admin_socket_beside(const std::string& socket);

/// Whether somebody takes connections there. The error says what to do.
[[nodiscard]] Result<void> try_socket(const std::string& socket);
[[nodiscard]] Result<void> try_tcp(const std::string& address);

}  // namespace evictd::ctl
