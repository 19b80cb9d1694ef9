#include "commands/json.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <string_view>

namespace json = boost::json;

namespace evictd::commands {
namespace {

void append(std::string& out, const json::value& value, std::size_t depth) {
  const auto line = [&](std::size_t indent) { out.append("\n").append(2 * indent, ' '); };
  if (const auto* object = value.if_object(); object != nullptr && !object->empty()) {
    out += '{';
    for (auto separator = ""; const auto& [key, member] : *object) {
      out += separator;
      line(depth + 1);
      out += json::serialize(key) + ": ";
      append(out, member, depth + 1);
      separator = ",";
    }
    line(depth);
    out += '}';
  } else if (const auto* array = value.if_array(); array != nullptr && !array->empty()) {
    out += '[';
    for (auto separator = ""; const auto& item : *array) {
      out += separator;
      line(depth + 1);
      append(out, item, depth + 1);
      separator = ",";
    }
    line(depth);
    out += ']';
  } else if (const auto* number = value.if_double()) {
    out += fmt::format("{}", *number);
  } else {
    out += json::serialize(value);
  }
}

/// Whether a reader of YAML would take the bare word for something else: true, 0, 1e3, null.
bool needs_quotes(const std::string& text) {
  // YAML 1.2, 10.3.2. What yaml-cpp has for them takes other arguments from 0.8 to 0.9.
  constexpr std::array<std::string_view, 5> nulls{"", "~", "null", "Null", "NULL"};
  const YAML::Node word(text);
  bool boolean = false;
  double number = 0;
  return YAML::convert<bool>::decode(word, boolean) || YAML::convert<double>::decode(word, number) ||
         std::ranges::find(nulls, text) != nulls.end();
}

void emit(YAML::Emitter& out, const std::string& text) {
  if (needs_quotes(text)) out << YAML::DoubleQuoted;
  out << text;
}

void emit(YAML::Emitter& out, const json::value& value) {
  switch (value.kind()) {
    case json::kind::object:
      out << YAML::BeginMap;
      for (const auto& [key, member] : value.get_object()) {
        out << YAML::Key << std::string(key) << YAML::Value;
        emit(out, member);
      }
      out << YAML::EndMap;
      break;
    case json::kind::array:
      out << YAML::BeginSeq;
      for (const auto& item : value.get_array()) emit(out, item);
      out << YAML::EndSeq;
      break;
    case json::kind::string: emit(out, std::string(value.get_string())); break;
    case json::kind::bool_: out << value.get_bool(); break;
    case json::kind::null: out << YAML::Null; break;
    case json::kind::double_: out << fmt::format("{}", value.get_double()); break;
    case json::kind::int64: out << value.get_int64(); break;
    case json::kind::uint64: out << value.get_uint64(); break;
  }
}

}  // namespace

std::string to_json_text(const json::value& value) {
  std::string text;
  append(text, value, 0);
  return text;
}

std::string to_yaml_text(const json::value& value) {
  YAML::Emitter out;
  emit(out, value);
  return out.c_str();
}

}  // namespace evictd::commands
