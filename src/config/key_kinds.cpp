#include "config/key_kinds.hpp"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iomanip>
#include <sstream>
#include <string_view>
#include <system_error>

#include "config/agent_configuration.hpp"
#include "core/quantity.hpp"

namespace evictd::config::kinds {
namespace {

// With the terminating zero, as the kernel has it.
constexpr std::size_t longest_socket_path = sizeof(sockaddr_un::sun_path) - 1;

/// "/a//b/" as "a/b". A ".." would lead out of the tree that the key is about.
Result<std::string> joined_parts(std::string_view text) {
  std::string joined;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('/', begin), text.size());
    const auto part = text.substr(begin, end - begin);
    begin = end + 1;
    if (part == "..") return fail(fmt::format("\"{}\" must not contain \"..\"", text));
    if (part.empty() || part == ".") continue;
    if (!joined.empty()) joined += '/';
    joined += part;
  }
  return joined;
}

Result<std::string> fitting_socket(std::string_view text) {
  auto path = normal_absolute_path(text);
  if (path && path->size() > longest_socket_path)
    return fail(fmt::format("\"{}\" is longer than a socket's path may be ({} bytes)", text, longest_socket_path));
  return path;
}

}  // namespace

std::string DurationBetween::type() const {
  return fmt::format("duration, {} to {}", core::to_string(min), core::to_string(max));
}

Result<core::Duration> DurationBetween::read(const Value& value) const {
  const auto duration = value.duration();
  if (duration && (*duration < min || *duration > max))
    return std::unexpected(value.error(fmt::format("\"{}\" is out of range: {} to {}", value.text().value_or(""),
                                                   core::to_string(min), core::to_string(max))));
  return duration;
}

std::string CountBetween::type() const { return fmt::format("number, {} to {}", min, max); }

std::string BytesBetween::type() const { return fmt::format("quantity, {} to {}", print(min), print(max)); }

std::string BytesBetween::print(std::int64_t value) const { return core::Quantity::bytes(value).to_string(); }

Result<std::int64_t> BytesBetween::read(const Value& value) const {
  const auto quantity = value.quantity();
  if (!quantity) return std::unexpected(quantity.error());
  const auto bytes = quantity->value();
  if (bytes >= min && bytes <= max) return bytes;
  return std::unexpected(
      value.error(fmt::format("\"{}\" is out of range: {} to {}", value.text().value_or(""), print(min), print(max))));
}

std::string PercentBetween::type() const { return fmt::format("percentage, {} to {}", print(min), print(max)); }

std::string PercentBetween::print(std::int64_t value) const { return fmt::format("{}%", value); }

Result<std::int64_t> PercentBetween::read(const Value& value) const {
  const auto text = value.text();
  if (!text) return std::unexpected(text.error());
  std::int64_t number = 0;
  const auto [rest, code] = std::from_chars(text->data(), text->data() + text->size(), number);
  const bool is_whole = code == std::errc{} && std::string_view(rest, text->data() + text->size()) == "%";
  if (is_whole && number >= min && number <= max) return number;
  return std::unexpected(
      value.error(fmt::format("\"{}\" is no whole percentage from {} to {}", *text, print(min), print(max))));
}

Result<std::string> Text::read(const Value& value) const {
  const auto text = value.text();
  if (!text) return text;
  auto accepted = rule(*text);
  if (!accepted) return std::unexpected(value.error(accepted.error()));
  return accepted;
}

Result<std::vector<std::pair<std::string, Value>>> read_texts(const Value& value) {
  std::vector<std::pair<std::string, Value>> texts;
  if (const auto words = value.text()) {
    std::istringstream stream{*words};
    while ((stream >> std::ws).peek() != std::istringstream::traits_type::eof()) {
      std::string word;
      if (!(stream >> std::quoted(word))) return std::unexpected(value.error("a quotation mark is not closed"));
      texts.emplace_back(std::move(word), value);
    }
    return texts;
  }
  const auto items = value.items();
  if (!items) return std::unexpected(items.error());
  for (const auto& item : *items) {
    auto text = item.text();
    if (!text) return std::unexpected(text.error());
    texts.emplace_back(*std::move(text), item);
  }
  return texts;
}

std::string as_word(const std::string& text) {
  if (!text.empty() && text.find_first_of(" \t\n\v\f\r\"") == std::string::npos) return text;
  std::ostringstream stream;
  stream << std::quoted(text);
  return stream.str();
}

Result<MapOf::Map> MapOf::read(const Value& value) const {
  const auto texts = read_texts(value);
  if (!texts) return std::unexpected(texts.error());
  Map map;
  for (const auto& [text, at] : *texts) {
    auto entry = parse(text);
    if (!entry) return std::unexpected(at.error(entry.error()));
    if (!map.insert(*entry).second)
      return std::unexpected(at.error(fmt::format("\"{}\" stands here a second time", entry->first)));
  }
  return map;
}

std::string MapOf::print(const Map& map) const {
  std::string text;
  for (const auto& [key, value] : map) text += (text.empty() ? "" : " ") + as_word(key + "=" + value);
  return text;
}

Result<std::string> normal_absolute_path(std::string_view text) {
  if (!text.starts_with('/')) return fail(fmt::format("\"{}\" is not an absolute path", text));
  auto parts = joined_parts(text);
  if (parts) parts->insert(0, 1, '/');
  return parts;
}

Result<std::string> normal_relative_path(std::string_view text) {
  auto parts = joined_parts(text);
  if (parts && parts->empty()) return fail(fmt::format("\"{}\" names nothing", text));
  return parts;
}

Result<std::string> unix_endpoint(std::string_view text) {
  constexpr std::string_view scheme = "unix://";
  if (!text.starts_with(scheme))
    return fail(fmt::format("\"{}\" is not a unix socket such as unix:///run/containerd/containerd.sock", text));
  auto path = fitting_socket(text.substr(scheme.size()));
  if (path) path->insert(0, scheme);
  return path;
}

Result<std::string> unix_endpoint_or_auto(std::string_view text) {
  if (text == "auto") return std::string(text);
  return unix_endpoint(text);
}

Result<std::string> directory_of_sockets(std::string_view text) {
  constexpr auto longest = longest_socket_path - 1 - longest_socket_name.size();
  auto path = normal_absolute_path(text);
  if (path && path->size() > longest)
    return fail(fmt::format("\"{}\" is longer than a directory of sockets may be ({} bytes)", text, longest));
  return path;
}

Result<std::string> path_or_none(std::string_view text) {
  if (text.empty()) return std::string{};
  return normal_absolute_path(text);
}

Result<std::string> path_or_auto_or_none(std::string_view text) {
  if (text == "auto") return std::string(text);
  return path_or_none(text);
}

Result<std::string> url_or_none(std::string_view text) {
  if (text.empty()) return std::string{};
  auto rest = text;
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!rest.starts_with(scheme)) continue;
    rest.remove_prefix(scheme.size());
    const bool has_host = !rest.empty() && rest.front() != '/' && rest.front() != ':';
    if (!has_host || rest.find_first_of("@?# ") != std::string_view::npos) break;
    return std::string(text.substr(0, text.find_last_not_of('/') + 1));
  }
  return fail(fmt::format("\"{}\" is no URL such as https://127.0.0.1:10250", text));
}

Result<std::string> anything(std::string_view text) { return std::string(text); }

}  // namespace evictd::config::kinds
