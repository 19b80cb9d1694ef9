#include "api_client.hpp"

#include <fmt/format.h>

#include <atomic>
#include <boost/json.hpp>
#include <chrono>
#include <utility>

#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"

namespace kubernetes {

namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

/// A call that takes longer is stuck.
constexpr auto answer_within = 60s;

std::optional<json::value> place(const std::string& body, std::string_view pointer) {
  boost::system::error_code error;
  const auto document = json::parse(body, error);
  if (error) return std::nullopt;
  const auto* found = document.find_pointer(pointer, error);
  if (found == nullptr) return std::nullopt;
  return *found;
}

}  // namespace

std::optional<std::string> Answer::find(std::string_view pointer) const {
  const auto found = place(body, pointer);
  if (!found) return std::nullopt;
  return found->is_string() ? std::string(found->get_string()) : json::serialize(*found);
}

std::size_t Answer::size(std::string_view pointer) const {
  const auto found = place(body, pointer);
  return found && found->is_array() ? found->get_array().size() : 0;
}

ApiClient::ApiClient(std::string server, std::filesystem::path authority, std::string token,
                     std::filesystem::path scratch)
    : server_{std::move(server)},
      authority_{std::move(authority)},
      token_{std::move(token)},
      scratch_{std::move(scratch)} {}

std::vector<std::string> ApiClient::command(const Request& request) const {
  static std::atomic<int> last = 0;
  std::vector<std::string> command{"curl",
                                   "--silent",
                                   "--show-error",
                                   "--noproxy",
                                   "*",
                                   "--max-time",
                                   fmt::format("{}", answer_within.count()),
                                   "--cacert",
                                   authority_,
                                   "--header",
                                   "Authorization: Bearer " + token_,
                                   "--write-out",
                                   "\n%{http_code}",
                                   "--request",
                                   request.method};
  if (!request.content_type.empty())
    command.insert(command.end(), {"--header", "Content-Type: " + request.content_type});
  if (!request.body.empty()) {
    const auto file = scratch_ / fmt::format("body-{}", ++last);
    testbed::replace_file(file, request.body);
    command.insert(command.end(), {"--data-binary", "@" + file.native()});
  }
  command.push_back(server_ + request.path);
  return command;
}

std::optional<Answer> ApiClient::try_send(const Request& request) const {
  std::string error;
  return ask(request, error);
}

Answer ApiClient::send(const Request& request) const {
  std::string error;
  if (auto answer = ask(request, error)) return *std::move(answer);
  testbed::fail(fmt::format("{} {}{}: {}", request.method, server_, request.path, error));
}

std::optional<Answer> ApiClient::ask(const Request& request, std::string& error) const {
  testbed::Process curl{command(request)};
  if (curl.wait(answer_within + 10s) != 0) {
    error = "no answer: " + curl.errors();
    return std::nullopt;
  }
  const auto output = curl.output();
  const auto line = output.rfind('\n');  // of --write-out
  return Answer{.status = std::stoi(output.substr(line + 1)), .body = output.substr(0, line)};
}

Answer ApiClient::create(const std::string& path, const std::string& object) const {
  return send({.method = "POST", .path = path, .body = object, .content_type = "application/yaml"});
}

Answer ApiClient::patch(const std::string& path, const std::string& patch, const std::string& content_type) const {
  return send({.method = "PATCH", .path = path, .body = patch, .content_type = content_type});
}

Answer expect_success(Answer answer) {
  if (answer.status < 200 || answer.status > 299)
    testbed::fail(fmt::format("the API server answered {}: {}", answer.status, answer.body));
  return answer;
}

}  // namespace kubernetes
