#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/nearest.hpp"
#include "config/yaml.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/quantity.hpp"

namespace evictd::config {

/// One key of a mapping and how its value reaches the member it belongs to. A structure is read by a table of these.
template <class Target>
struct Field {
  std::string_view key;
  Result<void> (*read)(const Value&, Target&);
};

/// What to do with a key that the table does not have.
enum class UnknownKeys : bool { pass_over, reject };

// How the types of members are read. A null value never gets here.
template <class T>
Result<void> store(Result<T> value, T& target) {
  if (!value) return std::unexpected(std::move(value).error());
  target = *std::move(value);
  return {};
}

inline Result<void> read(const Value& value, bool& target) { return store(value.boolean(), target); }
inline Result<void> read(const Value& value, std::string& target) { return store(value.text(), target); }
inline Result<void> read(const Value& value, core::Duration& target) { return store(value.duration(), target); }
inline Result<void> read(const Value& value, core::Quantity& target) { return store(value.quantity(), target); }
inline Result<void> read(const Value& value, std::int64_t& target) {
  using Limits = std::numeric_limits<std::int64_t>;
  return store(value.integer(Limits::min(), Limits::max()), target);
}
inline Result<void> read(const Value& value, std::int32_t& target) {
  using Limits = std::numeric_limits<std::int32_t>;
  const auto number = value.integer(Limits::min(), Limits::max());
  if (!number) return std::unexpected(number.error());
  target = static_cast<std::int32_t>(*number);
  return {};
}

template <class T>
Result<void> read(const Value& value, std::optional<T>& target) {
  T there{};
  if (auto result = read(value, there); !result) return result;
  target = std::move(there);
  return {};
}

/// Of a member that is absent unless `Read` can read it.
template <auto Read, class T>
Result<void> read_optional(const Value& value, std::optional<T>& target) {
  T there{};
  if (auto result = Read(value, there); !result) return result;
  target = std::move(there);
  return {};
}

/// A quantity of something that can be had: not negative.
inline Result<void> read_amount(const Value& value, core::Quantity& target) {
  if (auto result = read(value, target); !result) return result;
  if (target.is_negative()) return std::unexpected(value.error('"' + target.to_string() + "\" must not be negative"));
  return {};
}

/// A list, each of whose items `ReadItem` reads. Empty where one cannot be read.
template <auto ReadItem, class T>
Result<void> read_list(const Value& value, std::vector<T>& target) {
  if (auto result = value.take_elements(); !result) return result;
  const auto items = value.items();
  if (!items) return std::unexpected(items.error());
  target.clear();
  for (const auto& item : *items)
    if (auto result = ReadItem(item, target.emplace_back()); !result) {
      target.clear();
      return result;
    }
  return {};
}

/// A mapping whose keys are names, each of whose values `ReadItem` reads. The names may have dots in them.
template <auto ReadItem, class T>
Result<void> read_map(const Value& value, std::map<std::string, T, std::less<>>& target) {
  if (auto result = value.take_elements(); !result) return result;
  const auto entries = value.entries(": ");
  if (!entries) return std::unexpected(entries.error());
  target.clear();
  for (const auto& [key, entry] : *entries)
    if (auto result = ReadItem(entry, target[key]); !result) {
      if (!entry.forgives(result.error())) return result;
      target.erase(key);
    }
  return {};
}

/// The reader of one value, where a template wants a single function.
template <class T>
Result<void> read_one(const Value& value, T& target) {
  return read(value, target);
}

inline Result<void> read(const Value& value, std::vector<std::string>& target) {
  return read_list<read_one<std::string>>(value, target);
}

template <class T>
Result<void> read(const Value& value, std::map<std::string, T, std::less<>>& target) {
  return read_map<read_one<T>>(value, target);
}

/// The reader of a field whose member has one of the types above.
template <auto Member, class Target>
Result<void> into(const Value& value, Target& target) {
  return read(value, target.*Member);
}

/// The reader of a field whose member `Read` knows how to read.
template <auto Member, auto Read, class Target>
Result<void> into(const Value& value, Target& target) {
  return Read(value, target.*Member);
}

/// The reader of a field that is looked at later.
template <auto Member, class Target>
Result<void> keep(const Value& value, Target& target) {
  target.*Member = value;
  return {};
}

template <class Target>
Error unknown_key(const Value& value, std::string_view key, std::span<const Field<Target>> fields) {
  std::vector<std::string_view> names;
  for (const auto& field : fields) names.push_back(field.key);
  if (const auto hint = did_you_mean(key, names); !hint.empty()) return value.error("unknown key" + hint);
  std::string known;
  for (const auto name : names) known.append(known.empty() ? "" : ", ").append(name);
  return value.error("unknown key; those known here are " + known);
}

/// Reads a mapping by its table. A null value leaves its member as it is, and so does in a forgiving text one that
/// cannot be read: a reader writes when it knows.
template <class Target>
Result<void> read_fields(const Value& mapping, Target& target,
                         std::type_identity_t<std::span<const Field<Target>>> fields, UnknownKeys unknown) {
  const auto entries = mapping.entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [key, value] : *entries) {
    const auto field = std::ranges::find(fields, key, &Field<Target>::key);
    if (field == fields.end()) {
      if (unknown == UnknownKeys::reject) return std::unexpected(unknown_key<Target>(value, key, fields));
      continue;
    }
    if (value.is_null()) continue;
    if (auto result = field->read(value, target); !result && !value.forgives(result.error())) return result;
  }
  return {};
}

}  // namespace evictd::config
