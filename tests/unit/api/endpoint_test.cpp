#include "api/endpoint.hpp"

#include <doctest/doctest.h>
#include <evictd.pb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <future>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "api/raw_call.hpp"
#include "api/running_server.hpp"
#include "config/yaml.hpp"
#include "os/unix_address.hpp"

namespace evictd::api::endpoint_test {
namespace {

using test::Client;
using test::RunningServer;

/// Of this process, in bytes.
std::size_t memory() {
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0;
  std::size_t resident = 0;
  statm >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::string number(std::size_t value, int bytes) {
  std::string text;
  while (bytes > 0) text += static_cast<char>(value >> (8 * --bytes));
  return text;
}

std::size_t number(std::string_view text) {
  std::size_t value = 0;
  for (const char c : text) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

/// An HTTP/2 client of one stream, which sends more than any gRPC client would.
class Sender {
 public:
  Sender(const std::string& socket, const std::string& method)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(os::connect_to(socket_, socket) == 0);
    std::string headers;
    for (const auto& [name, value] : {std::pair<std::string, std::string>{":method", "POST"},
                                      {":scheme", "http"},
                                      {":path", method},
                                      {":authority", "localhost"},
                                      {"content-type", "application/grpc"},
                                      {"te", "trailers"}})
      headers += number(0, 1) + number(name.size(), 1) + name + number(value.size(), 1) + value;
    send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "") + frame(1, 4, 1, headers));
  }
  ~Sender() { ::close(socket_); }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// Sends a message of `size` bytes; gives how many were taken before the server gave the stream up, or the end.
  std::size_t send_message(std::size_t size) {
    std::string block = number(0, 1) + number(size, 4);
    std::size_t sent = 0;
    while (sent < size && is_open_) {
      const auto length = std::min({block.size(), connection_window_, stream_window_});
      if (length == 0) {
        receive();
        continue;
      }
      send(frame(0, 0, 1, block.substr(0, length)));
      connection_window_ -= length;
      stream_window_ -= length;
      sent += length;
      if (length == block.size())
        block.assign(16'384, 'x');
      else
        block.erase(0, length);
      while (is_open_ && is_readable(0)) receive();
    }
    return sent;
  }

 private:
  static std::string frame(std::size_t type, std::size_t flags, std::size_t stream, const std::string& payload) {
    return number(payload.size(), 3) + number(type, 1) + number(flags, 1) + number(stream, 4) + payload;
  }
  void send(const std::string& bytes) {
    for (std::size_t done = 0; done < bytes.size() && is_open_;) {
      const auto count = ::send(socket_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (count <= 0)
        is_open_ = false;
      else
        done += static_cast<std::size_t>(count);
    }
  }
  [[nodiscard]] bool is_readable(int milliseconds) const {
    pollfd look{.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&look, 1, milliseconds) == 1;
  }
  std::string read(std::size_t size) {
    std::string bytes(size, '\0');
    for (std::size_t done = 0; done < size && is_open_;) {
      const auto count = is_readable(60'000) ? ::recv(socket_, bytes.data() + done, size - done, 0) : 0;
      if (count <= 0)
        is_open_ = false;
      else
        done += static_cast<std::size_t>(count);
    }
    return bytes;
  }
  /// One frame.
  void receive() {
    const auto head = read(9);
    const auto payload = read(number(head.substr(0, 3)));
    const auto stream = number(head.substr(5));
    if (!is_open_) return;
    switch (head[3]) {
      case 1:  // HEADERS: the call has ended
      case 3:  // RST_STREAM
      case 7:  // GOAWAY
        is_open_ = false;
        break;
      case 4:  // SETTINGS
        for (std::size_t i = 0; i + 6 <= payload.size(); i += 6)
          if (number(payload.substr(i, 2)) == 4) {
            const auto initial = number(payload.substr(i + 2, 4));
            stream_window_ += initial - std::exchange(initial_window_, initial);
          }
        if (head[4] == 0) send(frame(4, 1, 0, ""));
        break;
      case 6:  // PING
        if (head[4] == 0) send(frame(6, 1, 0, payload));
        break;
      case 8:  // WINDOW_UPDATE
        (stream == 0 ? connection_window_ : stream_window_) += number(payload);
        break;
      default: break;
    }
  }

  int socket_;
  bool is_open_ = true;
  std::size_t initial_window_ = 65'535;
  std::size_t connection_window_ = 65'535;
  std::size_t stream_window_ = 65'535;
};

v1::RankPodsRequest rank_request(std::size_t size) {
  v1::RankPodsRequest request;
  request.set_signal(std::string(size, 'x'));
  return request;
}

grpc::Status rank_pods(const Client& client, const v1::RankPodsRequest& request) {
  grpc::ClientContext context;
  v1::RankPodsResponse response;
  return client.stub->RankPods(&context, request, &response);
}

}  // namespace

TEST_CASE("of a message that is larger than any may be no more is kept than one way in has memory for") {
  RunningServer server;
  const auto before = memory();
  Sender sender(server.socket, "/evictd.v1.EvictionService/RankPods");
  const auto taken = sender.send_message(std::size_t{1} << 30);
  CHECK(taken < std::size_t{400} << 20);
  CHECK(memory() < before + (std::size_t{400} << 20));

  const Client client(server.socket);
  grpc::ClientContext context;
  v1::NodeStatus status;
  CHECK(client.stub->GetNodeStatus(&context, {}, &status).ok());
}

TEST_CASE("by the administrators' socket messages of 16 MiB are taken, as many at a time as a caller may send") {
  RunningServer server;
  const auto request = rank_request(std::size_t{16} << 20);
  for (int time = 0; time < 3; ++time) {
    std::list<std::future<grpc::Status>> calls;
    for (int i = 0; i < 3; ++i)
      calls.push_back(std::async(std::launch::async, [&] { return rank_pods(Client(server.admin_socket), request); }));
    for (auto& call : calls) CHECK(call.get().error_message() == "no pods are known");
  }
}

TEST_CASE("by the readers' socket a message is taken that holds the largest text, and hardly a larger one") {
  RunningServer server;
  const Client client(server.socket);
  CHECK(rank_pods(client, rank_request(config::max_file_size + 1000)).error_message() == "no pods are known");

  constexpr std::size_t size = std::size_t{17'000'000};
  std::string empty_changes;
  while (empty_changes.size() < size) empty_changes += {'\x0a', '\0'};
  const auto before = memory();
  const auto refused = test::raw_call(client.channel, "/evictd.v1.EvictionService/UpdateThresholds", empty_changes);
  CHECK(refused.status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(memory() < before + (std::size_t{200} << 20));
}

TEST_CASE("what a request has that is unknown here is not kept for the reactor") {
  RunningServer server;
  const Client client(server.socket);
  std::string request{"\x0a\x01s", 3};
  for (int i = 0; i < 1000; ++i) request += {'\x7a', '\0'};
  CHECK(test::raw_call(client.channel, "/evictd.v1.EvictionService/RankPods", request).status.error_message() ==
        "no pods are known");
  const auto asked = server.reactor.run([&] { return server.asked; });
  CHECK(asked.signal() == "s");
  CHECK(asked.GetReflection()->GetUnknownFields(asked).empty());
}

TEST_CASE("a client that compresses is told that nobody inflates here") {
  RunningServer server;
  const Client client(server.socket);
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::RankPodsRequest request;
  request.set_signal(std::string(100'000, 'x'));
  v1::RankPodsResponse response;
  const auto status = client.stub->RankPods(&context, request, &response);
  CHECK(status.error_code() == grpc::StatusCode::UNIMPLEMENTED);
  CHECK(status.error_message() == "Compression algorithm 'gzip' is disabled.");
}

}  // namespace evictd::api::endpoint_test
