#pragma once
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace evictd {

/// What went wrong, as one line for an operator. It is made where it happened, gathers context on the way up
/// ("agent.yaml:12: node.cgroupRoot: …") and is logged once, at the edge.
struct Error {
  std::string message;
  /// Where in the line that the message names, from 1; 0: it names none, or the column is not known.
  int column = 0;

  /// The same error, seen from one level further out: "CONTEXT: message".
  [[nodiscard]] Error in(std::string_view context) const { return {std::string(context) + ": " + message, column}; }

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(std::string message) {
  return std::unexpected(Error{.message = std::move(message)});
}

[[nodiscard]] inline std::unexpected<Error> fail(const Error& error, std::string_view context) {
  return std::unexpected(error.in(context));
}

}  // namespace evictd
