#include <algorithm>
#include <string>
#include <vector>

#include "core/printable.hpp"
#include "prekill/varlink_message.hpp"
#include "target.hpp"

// What a hook before a kill sends: pieces of any length, answers, or neither. And the cgroup that it is told of.

namespace evictd::fuzz {
namespace {

/// Fed in pieces of this length; what comes after an answer that is too long is not asked for.
std::vector<std::string> answers_of(std::string_view bytes, std::size_t piece) {
  prekill::VarlinkReader reader;
  std::vector<std::string> result;
  while (!bytes.empty()) {
    reader.add(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      auto answer = reader.next();
      if (!is_good(answer)) return result;
      if (!*answer) break;
      result.push_back(**std::move(answer));
    }
  }
  return result;
}

void check_answer(std::string_view message) {
  const auto said = prekill::read_notify_answer(message);
  if (is_good(said)) return;
  check(said.error().message.size() < 1024, "what is told of an answer is short");
}

void check_call(std::string_view cgroup) {
  const auto call = prekill::notify_call(cgroup);
  const bool is_text = core::valid_utf8(cgroup) == cgroup.size();
  check(call.has_value() == is_text, "whatever is text can be told");
  if (!is_good(call)) return;
  check(call->find('\0') == call->size() - 1, "a call ends where it ends");
  check(prekill::read_notify_answer(std::string_view(*call).substr(0, call->size() - 1)).has_value(),
        "a call is an object without an error");
}

}  // namespace

void run(std::string_view input) {
  const auto answers = answers_of(input, std::max<std::size_t>(input.size(), 1));
  check(answers_of(input, 7) == answers, "answers do not depend on the pieces they come in");
  for (const auto& answer : answers) check_answer(answer);
  check_answer(input);
  check_call(input.substr(0, 4096));
}

}  // namespace evictd::fuzz
