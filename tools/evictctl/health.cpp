#include <fmt/format.h>

#include <CLI/App.hpp>
#include <chrono>

#include "core/error.hpp"
#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"
#include "health.grpc.pb.h"

namespace evictd::ctl {
namespace {

/// gRPC itself answers, without the agent's loop.
constexpr std::chrono::seconds healthy_within{2};

/// Nothing is printed but an error, as a probe wants it: the exit code is the answer.
Result<void> check_health(Context& context) {
  const auto client = Client::connect(context);
  if (!client) return std::unexpected(client.error());

  using Response = grpc::health::v1::HealthCheckResponse;
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + healthy_within);
  Response response;
  const auto asked = grpc::health::v1::Health::NewStub(client->channel())->Check(&call, {}, &response);
  if (!asked.ok()) return std::unexpected(client->explain(asked));
  if (response.status() == Response::SERVING) return {};
  return fail(fmt::format("the agent's health is {}", Response::ServingStatus_Name(response.status())));
}

}  // namespace

void add_health(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("health", "Exits with 0 if the agent serves its API, as a probe asks it");
  context.on(*command, [&context] { return check_health(context); });
}

}  // namespace evictd::ctl
