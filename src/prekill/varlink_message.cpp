#include "prekill/varlink_message.hpp"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>
#include <exception>
#include <utility>

#include "core/printable.hpp"

namespace json = boost::json;

namespace evictd::prekill {
namespace {

constexpr std::size_t longest_error_name = 100;

Result<void> read_varlink_answer(std::string_view message) {
  boost::system::error_code code;
  const auto document = json::parse(message, code);  // no deeper than 32, which is Boost's limit
  if (code) return fail("its answer is not JSON");
  const auto* answer = document.if_object();
  if (answer == nullptr) return fail("its answer is no object");
  if (const auto* error = answer->if_contains("error"); error != nullptr && !error->is_null()) {
    const auto* name = error->if_string();
    if (name == nullptr || name->empty()) return fail("its answer's error is no name");
    const std::string_view text{name->data(), name->size()};
    return fail(fmt::format("it failed: {}", core::printable(core::beginning(text, longest_error_name))));
  }
  if (const auto* more = answer->if_contains("continues"); more != nullptr && more->is_bool() && more->get_bool())
    return fail("it answers that more is to come, which was not asked for");
  if (const auto* parameters = answer->if_contains("parameters");
      parameters != nullptr && !parameters->is_object() && !parameters->is_null())
    return fail("its answer's parameters are no object");
  return {};
}

}  // namespace

Result<std::string> notify_call(std::string_view cgroup) {
  if (core::valid_utf8(cgroup) != cgroup.size()) return fail("the path of its cgroup is no UTF-8");
  json::object parameters;
  parameters["cgroup"] = cgroup;
  json::object call;
  call["method"] = "io.systemd.oom.Prekill.Notify";
  call["parameters"] = std::move(parameters);
  auto message = json::serialize(call);
  message += '\0';
  return message;
}

Result<void> read_notify_answer(std::string_view message) {
  try {
    return read_varlink_answer(message);
  } catch (const std::exception&) {  // no memory for it
    return fail("its answer cannot be read");
  }
}

void VarlinkReader::add(std::string_view piece) { received_ += piece; }

Result<std::optional<std::string>> VarlinkReader::next() {
  const auto end = received_.find('\0', looked_at_);
  const auto size = end == std::string::npos ? received_.size() : end;
  if (size > longest_answer) return fail(fmt::format("its answer has more than {} bytes", longest_answer));
  looked_at_ = size;
  if (end == std::string::npos) return std::nullopt;
  std::optional<std::string> message{received_.substr(0, end)};
  received_.erase(0, end + 1);
  looked_at_ = 0;
  return message;
}

}  // namespace evictd::prekill
