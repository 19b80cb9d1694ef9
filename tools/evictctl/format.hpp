#pragma once
#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

#include "core/error.hpp"

namespace evictd::ctl {

enum class Format : std::uint8_t { Table, Json, Yaml };

/// proto3 JSON in its default form: lowerCamel names, enums by name, 64-bit numbers as strings. Fields without a value
/// are there too, except messages and optional ones. On one line, or laid out. An error where a time is beyond what
/// JSON can say.
[[nodiscard]] Result<std::string> to_json(const google::protobuf::Message& message, bool one_line);

/// The same as YAML in block style: what is a string in JSON reads as a string here.
[[nodiscard]] Result<std::string> to_yaml(const google::protobuf::Message& message);

/// In one of the two, which is no table, with the line's end. Of many, JSON is one line each, and YAML begins with
/// "---".
[[nodiscard]] Result<std::string> in_format(Format format, const google::protobuf::Message& message, bool one_of_many);

}  // namespace evictd::ctl
