#include "devices/registration_server.hpp"

#include <deviceplugin.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/server_posix.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async/spawn.hpp"
#include "rpc/server/acceptor.hpp"
#include "rpc/server/bound_connections.hpp"
#include "rpc/server/call_budget.hpp"
#include "rpc/server/completion.hpp"
#include "rpc/server/grpc_end.hpp"
#include "rpc/server/open_calls.hpp"
#include "rpc/server/open_socket.hpp"
#include "rpc/server/unary_call.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::devices {
namespace {

using Call = rpc::UnaryCall<::v1beta1::RegisterRequest, ::v1beta1::Empty>;

/// A plugin registers once, over a connection that it closes. Each may take as long as PluginsOptions::patience.
constexpr rpc::CallLimits most_registrations{.total = 64, .per_caller = 64};
constexpr rpc::AcceptorLimits connection_limits{.connections = 128, .silent = 32};
/// A registration has some hundred bytes.
constexpr int longest_request = 64 << 10;

/// Reflection adds itself to every server of a program that links it, with threads of its own.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override { plugins->clear(); }
};

/// As Go's servers have it for an error that is no status.
grpc::Status refusal(const Error& error) { return {grpc::StatusCode::UNKNOWN, error.message}; }

/// The call may have ended meanwhile: it is shared with gRPC alone.
asio::awaitable<void> answer(RegistrationServer::Register handle, Registration registration,
                             std::weak_ptr<Call> waiting) {
  const auto taken = co_await handle(std::move(registration));
  const auto call = waiting.lock();
  if (call == nullptr) co_return;
  if (taken)
    call->answer({});
  else
    call->abort(refusal(taken.error()));
}

}  // namespace

struct RegistrationServer::Parts {
  Parts(asio::any_io_executor executor, os::ListeningSocket listening, Register given, std::chrono::milliseconds idle)
      : reactor(std::move(executor)), socket(std::move(listening)), handle(std::move(given)), longest_idle(idle) {}

  class Registering;

  void start();
  void arrived(const std::shared_ptr<Call>& call);
  void shut_down();

  asio::any_io_executor reactor;
  os::ListeningSocket socket;
  Register handle;
  std::chrono::milliseconds longest_idle;
  std::shared_ptr<rpc::OpenCalls> calls = std::make_shared<rpc::OpenCalls>();
  std::shared_ptr<rpc::CallBudget> budget = std::make_shared<rpc::CallBudget>(most_registrations);
  ::v1beta1::Registration::AsyncService service;
  std::weak_ptr<const Call::Method> method;  // shared by the calls
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<rpc::CompletionThread> queue_thread;
  rpc::OpenSockets inside;                  // the acceptor's, while there is one
  std::unique_ptr<rpc::Acceptor> acceptor;  // hands over to the server
};

/// The one method.
class RegistrationServer::Parts::Registering final : public Call::Method {
 public:
  explicit Registering(Parts& parts) : parts_(parts) {}

  void request(grpc::ServerContext* context, ::v1beta1::RegisterRequest* request,
               grpc::ServerAsyncResponseWriter<::v1beta1::Empty>* responder, void* tag) const override {
    auto* const queue = parts_.queue.get();
    parts_.service.RequestRegister(context, request, responder, queue, queue, tag);
  }
  void arrived(const std::shared_ptr<Call>& call) const override { parts_.arrived(call); }

 private:
  Parts& parts_;
};

void RegistrationServer::Parts::start() {
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  builder.SetOption(std::make_unique<WithoutReflection>());
  builder.SetMaxReceiveMessageSize(longest_request);
  rpc::bound_connections(builder, longest_idle);
  queue = builder.AddCompletionQueue();
  server = builder.BuildAndStart();
  auto registering = std::make_shared<const Registering>(*this);
  method = registering;
  Call::listen(std::move(registering));
  queue_thread = std::make_unique<rpc::CompletionThread>(*queue, "registrations");

  std::vector<rpc::Listener> listeners;
  listeners.push_back({.name = std::string(registration_socket),
                       .socket = socket.take(),
                       .greeting = rpc::Greeting::Http2,
                       .let_in = [this](os::FileDescriptor connection) {
                         inside.add(connection.get());
                         grpc::AddInsecureChannelFromFd(server.get(), connection.release());
                       }});
  acceptor = std::make_unique<rpc::Acceptor>(std::move(listeners), connection_limits);
}

/// On the queue's thread.
void RegistrationServer::Parts::arrived(const std::shared_ptr<Call>& call) {
  auto registration = read_registration(call->request());
  if (!registration) return call->abort(refusal(registration.error()));
  auto place = budget->take("", 1);
  if (!place) return call->abort({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many plugins register: try again later"});
  // A plugin that leaves meanwhile is served all the same: it may only be short of patience.
  if (!call->begin(calls, std::move(place), nullptr)) return;
  const std::weak_ptr<Call> waiting = call;
  async::spawn_contained(reactor, answer(handle, *std::move(registration), waiting),
                         [waiting](const std::string& reason) {
                           if (const auto failed = waiting.lock()) failed->abort({grpc::StatusCode::INTERNAL, reason});
                         });
}

void RegistrationServer::Parts::shut_down() {
  acceptor.reset();
  calls->abort_all(rpc::shutting_down());
  rpc::shut_down(*server, inside, std::chrono::system_clock::now() + 100ms);
  // As in api::Endpoint: what a call ends by must not meet a queue that is shut down.
  const auto give_up = std::chrono::steady_clock::now() + 1s;
  while (!method.expired() && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(100us);
  queue_thread.reset();
}

RegistrationServer::RegistrationServer(asio::any_io_executor reactor, os::ListeningSocket socket, Register handle,
                                       std::chrono::milliseconds longest_idle)
    : parts_(std::make_unique<Parts>(std::move(reactor), std::move(socket), std::move(handle), longest_idle)) {
  parts_->start();
}

RegistrationServer::~RegistrationServer() {
  // While it still listens, and nobody else's socket can have its inode: that of a kubelet stays.
  std::optional{std::move(parts_->socket)}.reset();
  parts_->shut_down();
  rpc::end_grpc(std::move(parts_));
}

}  // namespace evictd::devices
