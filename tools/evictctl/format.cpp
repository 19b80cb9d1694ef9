#include "evictctl/format.hpp"

#include <google/protobuf/util/json_util.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "core/printable.hpp"

namespace evictd::ctl {
namespace {

/// Whether the text may stand without quotes: it begins with a letter or a slash, holds nothing that YAML gives a
/// meaning to, and is none of the words that YAML 1.1 or 1.2 reads as something else than a string.
bool is_plain(std::string_view text) {
  constexpr std::array<std::string_view, 8> words{"null", "true", "false", "yes", "no", "on", "off", "nan"};
  if (text.size() < 2 || text.back() == ':') return false;  // "y" and "n" are booleans in YAML 1.1
  const auto first = static_cast<unsigned char>(text.front());
  if (std::isalpha(first) == 0 && first != '/') return false;
  const auto harmless = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("/._-+%: ").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!std::ranges::all_of(text, harmless) || text.find(": ") != std::string_view::npos || text.back() == ' ')
    return false;
  return std::ranges::none_of(words, [&](std::string_view word) {
    return std::ranges::equal(text, word, {}, [](unsigned char c) { return std::tolower(c); });
  });
}

void emit(YAML::Emitter& out, const YAML::Node& node) {
  if (node.IsMap()) {
    if (node.size() == 0) out << YAML::Flow;
    out << YAML::BeginMap;
    for (const auto& entry : node) {
      out << YAML::Key;
      emit(out, entry.first);
      out << YAML::Value;
      emit(out, entry.second);
    }
    out << YAML::EndMap;
  } else if (node.IsSequence()) {
    if (node.size() == 0) out << YAML::Flow;
    out << YAML::BeginSeq;
    for (const auto& item : node) emit(out, item);
    out << YAML::EndSeq;
  } else {
    const bool was_quoted = node.Tag() == "!";  // a string in JSON
    if (was_quoted && !is_plain(node.Scalar())) out << YAML::DoubleQuoted;
    out << node.Scalar();
  }
}

/// protobuf escapes most of what a terminal would obey, but not all that turns the direction of writing. What is
/// escaped here is part of a string, and is written as JSON has it.
std::string fit_for_a_terminal(std::string_view json) {
  std::string result;
  while (!json.empty()) {
    const auto line = json.substr(0, json.find('\n'));
    result += core::printable(line);
    json.remove_prefix(line.size());
    if (json.empty()) break;
    result += '\n';
    json.remove_prefix(1);
  }
  return result;
}

}  // namespace

Result<std::string> to_json(const google::protobuf::Message& message, bool one_line) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = !one_line;
  options.always_print_primitive_fields = true;
  std::string json;
  if (const auto status = google::protobuf::util::MessageToJsonString(message, &json, options); !status.ok())
    return fail("the reply cannot be shown as JSON: " + std::string(status.message()));
  return fit_for_a_terminal(json);
}

Result<std::string> to_yaml(const google::protobuf::Message& message) {
  const auto json = to_json(message, true);
  if (!json) return json;
  YAML::Emitter out;
  out.SetOutputCharset(YAML::EscapeNonAscii);  // no character may turn the terminal's direction of writing
  emit(out, YAML::Load(*json));                // JSON is YAML
  return out.c_str();
}

}  // namespace evictd::ctl
