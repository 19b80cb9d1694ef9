#include "agent/describe_given_time.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <string_view>

#include "agent/describe.hpp"
#include "core/duration.hpp"
#include "core/printable.hpp"

namespace evictd::agent {
namespace {

/// An event has no more of them, and a line for people has fewer.
constexpr std::size_t most_answers = 64;
constexpr std::size_t answers_shown = 8;

/// What others say.
std::string bounded(const std::string& text) {
  constexpr std::size_t longest = 256;
  const auto safe = core::printable(text);
  return std::string(core::beginning(safe, longest));
}

double in_seconds(core::Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string_view phase_name(evict::Braked::Phase phase) {
  switch (phase) {
    case evict::Braked::Phase::held: return "held";
    case evict::Braked::Phase::ended: return "ended";
    case evict::Braked::Phase::killed: break;
  }
  return "killed";
}

}  // namespace

v1::Braked describe_braked(const evict::Braked& braked) {
  v1::Braked message;
  message.set_limit_bytes(braked.limit);
  message.set_usage_bytes(braked.usage);
  message.set_phase(std::string(phase_name(braked.phase)));
  message.set_why(braked.why);
  const bool held = braked.phase == evict::Braked::Phase::held;
  *message.mutable_duration() = to_duration(held ? braked.given : braked.duration);
  return message;
}

std::string describe(const evict::Braked& braked) {
  switch (braked.phase) {
    case evict::Braked::Phase::held:
      return fmt::format("held at {}, given {} to end", human_bytes(braked.limit), core::to_string(braked.given));
    case evict::Braked::Phase::ended: return fmt::format("ended by itself after {:.1f} s", in_seconds(braked.duration));
    case evict::Braked::Phase::killed: break;
  }
  return fmt::format("killed after {:.1f} s{}{}", in_seconds(braked.duration), braked.why.empty() ? "" : ": ",
                     braked.why);
}

v1::HooksAsked describe_asked(const evict::HooksAsked& asked) {
  v1::HooksAsked message;
  for (const auto& answer : asked.answers) {
    if (message.answers_size() == static_cast<int>(most_answers)) break;
    auto& added = *message.add_answers();
    added.set_hook(bounded(answer.hook));
    added.set_outcome(bounded(answer.outcome));
    *added.mutable_took() = to_duration(answer.took);
  }
  return message;
}

std::string describe(const evict::HooksAsked& asked) {
  std::string text = "asked before the kill: ";
  for (std::size_t i = 0; i < asked.answers.size() && i < answers_shown; ++i) {
    const auto& answer = asked.answers[i];
    text += fmt::format("{}{} {} after {:.1f} s", i == 0 ? "" : ", ", bounded(answer.hook), bounded(answer.outcome),
                        in_seconds(answer.took));
  }
  if (asked.answers.empty()) text += "nobody answered";
  if (asked.answers.size() > answers_shown) text += fmt::format(", and {} more", asked.answers.size() - answers_shown);
  return text;
}

}  // namespace evictd::agent
