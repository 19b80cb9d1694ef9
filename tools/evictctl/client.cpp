#include "evictctl/client.hpp"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <fstream>
#include <tuple>
#include <utility>

#include "evictctl/address.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/input.hpp"

namespace evictd::ctl {
namespace {

/// A ranking of hundreds of pods fits with room to spare; gRPC's own limit is 4 MiB.
constexpr int largest_message = 16 << 20;

Result<grpc::SslCredentialsOptions> read_files(const TlsFiles& files) {
  grpc::SslCredentialsOptions read;
  for (const auto& [option, path, text] : {std::tuple{"--ca", &files.ca, &read.pem_root_certs},
                                           std::tuple{"--cert", &files.certificate, &read.pem_cert_chain},
                                           std::tuple{"--key", &files.key, &read.pem_private_key}}) {
    std::ifstream file(*path);
    auto read_text = read_input(file);
    if (!read_text) return std::unexpected(read_text.error().in(fmt::format("{} {}", option, *path)));
    *text = *std::move(read_text);
  }
  return read;
}

/// What gRPC says of a handshake that failed, for the operator.
std::string explain_tls(const std::string& said) {
  for (const auto* own_verdict : {"certificate verify failed", "CERTIFICATE_VERIFY_FAILED",
                                  "is not in peer certificate", "Hostname Verification"})
    if (said.find(own_verdict) != std::string::npos)
      return "its certificate is not to be trusted: it is not signed by what --ca holds, or not made for this address";
  return "it closed the connection: this client's certificate (--cert) may not be signed by what the agent's "
         "api.tcp.clientCaFile holds";
}

}  // namespace

Result<Client> Client::connect(Context& context, Access access) {
  if (is_tcp(context.address)) {
    const auto files = read_files(context.tls);
    if (!files) context.bad_input = true;
    if (!files) return std::unexpected(files.error());
    if (const auto tried = try_tcp(context.address); !tried) return std::unexpected(tried.error());
    return Client(context.address, context.address, grpc::SslCredentials(*files));
  }
  auto socket = socket_of(context.address);
  if (!socket) return std::unexpected(socket.error());
  if (access == Access::Change) socket = admin_socket_beside(*socket);
  if (const auto tried = try_socket(*socket); !tried) return std::unexpected(tried.error());
  return Client(*socket, "unix:" + *socket, nullptr);
}

Client::Client(std::string where, const std::string& target,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : where_(std::move(where)), is_tls_(credentials != nullptr) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(largest_message);
  // Newer gRPC would send the escaped path (grpc#38142). With TLS it is the name that the certificate is checked for.
  if (!is_tls_) arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  channel_ = grpc::CreateCustomChannel(target, is_tls_ ? credentials : grpc::InsecureChannelCredentials(), arguments);
  evictions_ = v1::EvictionService::NewStub(channel_);
}

Error Client::explain(const grpc::Status& status) const {
  const auto& said = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      // It was there a moment ago: what failed is the handshake.
      if (is_tls_ && channel_->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE)
        return {fmt::format("no TLS with the agent at {}: {} ({})", where_, explain_tls(said), said)};
      return {fmt::format("the agent at {} went away ({})", where_, said)};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      // The agent says itself what it waited for; gRPC says this, and where there is no more to say nothing.
      if (!said.empty() && said != "Deadline Exceeded") return {said};
      return {fmt::format("the agent at {} does not answer", where_)};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {fmt::format("the agent at {} does not know this call: it is older than this evictctl", where_)};
    default:
      return {said.empty()
                  ? fmt::format("the agent at {} refused (code {})", where_, static_cast<int>(status.error_code()))
                  : said};
  }
}

Error Client::refused(Context& context, const grpc::Status& status) const {
  context.bad_input = status.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
  return explain(status);
}

}  // namespace evictd::ctl
