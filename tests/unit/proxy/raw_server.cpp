#include "proxy/raw_server.hpp"

#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/server_builder.h>

#include <stdexcept>

#include "api/raw_call.hpp"

namespace evictd::test {
namespace {

class NoPlugins final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override { plugins->clear(); }
};

}  // namespace

void RawServerCall::Result::set(bool value) {
  const std::lock_guard lock(mutex_);
  value_ = value;
  changed_.notify_all();
}

bool RawServerCall::Result::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return value_.has_value(); });
  return *std::exchange(value_, std::nullopt);
}

bool RawServerCall::Result::seen_within(std::chrono::seconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return value_.has_value(); });
}

Metadata RawServerCall::metadata() const {
  Metadata headers;
  for (const auto& [key, value] : context_.client_metadata())
    headers.emplace_back(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  return headers;
}

std::optional<std::chrono::milliseconds> RawServerCall::time_left() const {
  const auto deadline = context_.raw_deadline();
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return std::nullopt;
  return std::chrono::milliseconds(gpr_time_to_millis(gpr_time_sub(deadline, gpr_now(deadline.clock_type))));
}

void RawServerCall::add_initial_metadata(const Metadata& headers) {
  for (const auto& [key, value] : headers) context_.AddInitialMetadata(key, value);
}

void RawServerCall::add_trailing_metadata(const Metadata& headers) {
  for (const auto& [key, value] : headers) context_.AddTrailingMetadata(key, value);
}

bool RawServerCall::send_initial_metadata() {
  StartSendInitialMetadata();
  return sent_.take();
}

std::optional<std::string> RawServerCall::read() {
  StartRead(&message_);
  if (!read_.take()) return std::nullopt;
  return to_string(message_);
}

bool RawServerCall::write(const std::string& bytes) {
  const auto message = to_buffer(bytes);
  StartWrite(&message);
  return written_.take();
}

bool RawServerCall::wait_until_cancelled() { return cancelled_.seen_within(std::chrono::minutes{1}); }

RawServer::RawServer(const std::string& socket, Handler handler) : handler_(std::move(handler)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&service_);
  builder.SetOption(std::make_unique<NoPlugins>());
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 20);
  server_ = builder.BuildAndStart();
  if (!server_) throw std::runtime_error("no server on " + socket);
}

RawServer::~RawServer() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  for (auto& thread : threads_) thread.join();
}

int RawServer::calls() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(threads_.size());
}

grpc::ServerGenericBidiReactor* RawServer::Service::CreateReactor(grpc::GenericCallbackServerContext* context) {
  auto* call = new RawServerCall(*context);
  const std::lock_guard lock(server_.mutex_);
  server_.threads_.emplace_back([call, handler = server_.handler_] {
    call->Finish(handler(*call));
    call->done_.take();
    delete call;
  });
  return call;
}

}  // namespace evictd::test
