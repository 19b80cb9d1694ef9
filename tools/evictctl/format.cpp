#include "evictctl/format.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/predicate.hpp>
#include <cctype>
#include <charconv>
#include <ranges>
#include <string_view>

#include "core/printable.hpp"

namespace evictd::ctl {
namespace {

/// Whether the text may stand without quotes: it begins with a letter or a slash, holds nothing that YAML gives a
/// meaning to, and is none of the words that YAML 1.1 or 1.2 reads as something else than a string.
bool is_plain(std::string_view text) {
  constexpr std::array<std::string_view, 8> words{"null", "true", "false", "yes", "no", "on", "off", "nan"};
  if (text.size() < 2) return false;  // "y" and "n" are booleans in YAML 1.1
  if (text.back() == ':' || text.back() == ' ') return false;
  if (text.front() != '/' && std::isalpha(static_cast<unsigned char>(text.front())) == 0) return false;
  if (!boost::all(text, boost::is_alnum() || boost::is_any_of("/._-+%: ")) || text.contains(": ")) return false;
  return std::ranges::none_of(words, [&](std::string_view word) { return boost::iequals(text, word); });
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

/// What JSON writes as the pair "\ud83d\ude00" is "\U0001f600" in YAML, where half of a pair is no character.
std::string with_whole_characters(std::string_view json) {
  const auto unit_at = [&](std::size_t place) -> unsigned {
    unsigned unit = 0;
    if (json.substr(place, 2) != "\\u" || json.size() < place + 6) return 0;
    std::from_chars(json.data() + place + 2, json.data() + place + 6, unit, 16);
    return unit;
  };
  std::string result;
  for (std::size_t i = 0; i < json.size();) {
    const unsigned high = unit_at(i);
    const unsigned low = high >= 0xd800 && high < 0xdc00 ? unit_at(i + 6) : 0;
    if (low >= 0xdc00 && low < 0xe000) {
      result += fmt::format("\\U{:08x}", 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
      i += 12;
      continue;
    }
    const std::size_t length = json[i] == '\\' ? 2 : 1;  // the second of two backslashes begins nothing
    result += json.substr(i, length);
    i += length;
  }
  return result;
}

/// protobuf escapes most of what a terminal would obey, but not all that turns the direction of writing. What is
/// escaped here is part of a string, and is written as JSON has it.
std::string fit_for_a_terminal(std::string_view json) {
  std::string result;
  for (const auto line : std::views::split(json, '\n')) {
    if (!result.empty()) result += '\n';
    result += core::printable({line.begin(), line.end()});
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
  try {
    YAML::Emitter out;
    out.SetOutputCharset(YAML::EscapeNonAscii);           // no character may turn the terminal's direction of writing
    emit(out, YAML::Load(with_whole_characters(*json)));  // JSON is YAML but for these
    return out.c_str();
  } catch (const YAML::Exception& error) {
    return fail(fmt::format("the reply cannot be shown as YAML: {}", error.what()));
  }
}

Result<std::string> in_format(Format format, const google::protobuf::Message& message, bool one_of_many) {
  auto text = format == Format::Json ? to_json(message, one_of_many) : to_yaml(message);
  if (!text) return text;
  if (one_of_many && format == Format::Yaml) text->insert(0, "---\n");
  if (!text->ends_with('\n')) *text += '\n';
  return text;
}

}  // namespace evictd::ctl
