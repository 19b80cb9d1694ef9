#include "evictctl/client.hpp"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace evictd::ctl {
namespace {

/// A ranking of hundreds of pods fits with room to spare; gRPC's own limit is 4 MiB.
constexpr int largest_message = 16 << 20;

/// 0 or errno.
int try_to_connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int error = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

Error explain_absence(const std::string& path, int error) {
  switch (error) {
    case ENOENT: return {fmt::format("no agent answers at {} (no such file): is evictd running?", path)};
    case ECONNREFUSED: return {fmt::format("no agent answers at {} (connection refused): is evictd running?", path)};
    case EACCES:
      return {fmt::format("no access to {} (permission denied): run as root or as a member of its group (api.group)",
                          path)};
    case ENAMETOOLONG: return {fmt::format("{} is longer than a socket's path may be (107 bytes)", path)};
    default: return {fmt::format("no agent answers at {} ({})", path, std::strerror(error))};
  }
}

}  // namespace

Result<std::string> socket_of(const std::string& address) {
  std::string_view path = address;
  for (const std::string_view scheme : {"unix://", "unix:"})
    if (path.starts_with(scheme)) {
      path.remove_prefix(scheme.size());
      break;
    }
  if (!path.starts_with('/'))
    return fail(fmt::format("\"{}\" is not a unix socket such as unix:///run/evictd/evictd.sock", address));
  return std::string(path);
}

Result<Client> Client::connect(const std::string& address) {
  const auto socket = socket_of(address);
  if (!socket) return std::unexpected(socket.error());
  if (const int error = try_to_connect(*socket)) return std::unexpected(explain_absence(*socket, error));
  return Client(*socket);
}

Client::Client(std::string socket) : socket_(std::move(socket)) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(largest_message);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");  // newer gRPC would send the escaped path (grpc#38142)
  channel_ = grpc::CreateCustomChannel("unix:" + socket_, grpc::InsecureChannelCredentials(), arguments);
  evictions_ = v1::EvictionService::NewStub(channel_);
  health_ = grpc::health::v1::Health::NewStub(channel_);
}

Error Client::explain(const grpc::Status& status) const {
  const auto& said = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE: return {fmt::format("the agent at {} went away ({})", socket_, said)};
    case grpc::StatusCode::DEADLINE_EXCEEDED: return {fmt::format("the agent at {} does not answer", socket_)};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {fmt::format("the agent at {} does not know this call: it is older than this evictctl", socket_)};
    default:
      return {said.empty()
                  ? fmt::format("the agent at {} refused (code {})", socket_, static_cast<int>(status.error_code()))
                  : said};
  }
}

}  // namespace evictd::ctl
