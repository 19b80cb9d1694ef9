#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace evictd::test {

/// A plain connection to a port of this machine, for what an HTTP library would not send. Blocking; it waits long
/// enough for a loaded machine, and throws where that is over.
class RawConnection {
 public:
  explicit RawConnection(std::uint16_t port);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  /// Whether the peer still takes it.
  bool send(std::string_view bytes);
  /// No more will be sent: half of the connection is closed.
  void finish_sending();
  /// What came, up to and with `end`.
  std::string read_until(std::string_view end);
  std::string read_exactly(std::size_t size);
  /// All that comes until the peer ends the connection.
  std::string read_to_end();

 private:
  /// False at the end.
  bool read_more();
  int socket_;
  std::string received_;
};

struct HttpAnswer {
  int status = 0;
  std::string header{};  ///< all of it
  std::string body{};
};

/// One request on a connection of its own.
[[nodiscard]] HttpAnswer http_request(std::uint16_t port, std::string_view method, std::string_view target);
[[nodiscard]] inline HttpAnswer http_get(std::uint16_t port, std::string_view target) {
  return http_request(port, "GET", target);
}

/// A port nobody listens on at this moment.
[[nodiscard]] std::uint16_t free_port();

}  // namespace evictd::test
