#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "evictctl/admit_table.hpp"
#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/format.hpp"

namespace evictd::ctl {
namespace {

/// The handlers only compute; an agent that needs longer is stuck.
/// The agent reads no larger one.
constexpr std::size_t largest_file = std::size_t{1} << 20;

struct AdmitOptions {
  std::string file;
  bool reserve = false;
};

Result<std::string> read(std::istream& stream, const std::string& name) {
  std::string text(largest_file + 1, '\0');
  errno = 0;
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (stream.fail() && !stream.eof()))
    return fail(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > largest_file) return fail(fmt::format("{}: is larger than 1 MiB", name));
  return text;
}

/// For people.
std::string name_of(const std::string& file) { return file == "-" ? "the standard input" : file; }

Result<std::string> read_pods(const std::string& file) {
  if (file == "-") return read(std::cin, name_of(file));
  std::ifstream stream(file);
  if (!stream) return fail(fmt::format("{}: cannot be read: {}", file, std::strerror(errno)));
  return read(stream, file);
}

Result<void> print(const Context& context, const v1::AdmitBatchResponse& reply) {
  if (context.format == Format::Table) {
    print_admission(context.out, reply, context.table_look());
    return {};
  }
  const auto text = in_format(context.format, reply, false);
  if (!text) return std::unexpected(text.error());
  context.out << *text;
  return {};
}

/// Whether all may run.
Result<bool> admit(Context& context, const AdmitOptions& options) {
  v1::AdmitBatchRequest request;
  auto text = read_pods(options.file);
  context.bad_input = !text;
  if (!text) return std::unexpected(text.error());
  request.add_pods(*std::move(text));
  request.set_reserve(options.reserve);

  const auto client = Client::connect(context, options.reserve ? Access::Change : Access::Look);
  if (!client) return std::unexpected(client.error());
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + answer_within);
  v1::AdmitBatchResponse reply;
  if (const auto result = client->evictions().AdmitBatch(&call, request, &reply); !result.ok()) {
    context.bad_input = result.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
    const auto error = client->explain(result);
    return std::unexpected(context.bad_input ? error.in(name_of(options.file)) : error);
  }
  if (auto printed = print(context, reply); !printed) return std::unexpected(printed.error());
  return std::ranges::all_of(reply.answers(), [](const v1::AdmitResponse& answer) { return answer.admitted(); });
}

}  // namespace

void add_admit(CLI::App& app, Context& context) {
  auto options = std::make_shared<AdmitOptions>();
  auto* command = app.add_subcommand("admit", "Whether pods may run on the node now; exits with 1 if one may not");
  command->add_option("-f,--file", options->file, "The pods, YAML or JSON; \"-\": the standard input")
      ->type_name("FILE")
      ->required();
  command->add_flag("--reserve", options->reserve,
                    "Let it take effect: what the pods are given is theirs, and who has to make room is evicted");
  command->callback([&context, options] {
    context.chosen = [&context, options]() -> Result<void> {
      const auto admitted = admit(context, *options);
      if (!admitted) return std::unexpected(admitted.error());
      context.denied = !*admitted;
      return {};
    };
  });
}

}  // namespace evictd::ctl
