#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/yaml.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"

namespace evictd::config::kinds {

// What a key may hold. A kind names itself for documentation, reads a value or says at which line it is wrong, and
// prints it in the form it is written in.

/// The texts of a list, each with its place. A single text stands for as many as it has words; "two words" are one.
[[nodiscard]] Result<std::vector<std::pair<std::string, Value>>> read_texts(const Value& value);
/// The text as one word of such a single text.
[[nodiscard]] std::string as_word(const std::string& text);

/// true or false.
struct Flag {
  [[nodiscard]] std::string type() const { return "boolean"; }
  [[nodiscard]] Result<bool> read(const Value& value) const { return value.boolean(); }
  [[nodiscard]] std::string print(bool value) const { return value ? "true" : "false"; }
};

/// A duration within both bounds.
struct DurationBetween {
  core::Duration min;
  core::Duration max;

  [[nodiscard]] std::string type() const;
  [[nodiscard]] Result<core::Duration> read(const Value& value) const;
  [[nodiscard]] std::string print(core::Duration value) const { return core::to_string(value); }
};

/// A whole number within both bounds.
struct CountBetween {
  std::int64_t min;
  std::int64_t max;

  [[nodiscard]] std::string type() const;
  [[nodiscard]] Result<std::int64_t> read(const Value& value) const { return value.integer(min, max); }
  [[nodiscard]] std::string print(std::int64_t value) const { return std::to_string(value); }
};

/// An amount of bytes within both bounds, written as a quantity: "32Mi".
struct BytesBetween {
  std::int64_t min;
  std::int64_t max;

  [[nodiscard]] std::string type() const;
  [[nodiscard]] Result<std::int64_t> read(const Value& value) const;
  [[nodiscard]] std::string print(std::int64_t value) const;
};

/// A whole number of percent within both bounds: "50%".
struct PercentBetween {
  std::int64_t min;
  std::int64_t max;

  [[nodiscard]] std::string type() const;
  [[nodiscard]] Result<std::int64_t> read(const Value& value) const;
  [[nodiscard]] std::string print(std::int64_t value) const;
};

/// Text that a rule accepts. The rule may put it into its normal form.
struct Text {
  std::string_view name;
  Result<std::string> (*rule)(std::string_view);

  [[nodiscard]] std::string type() const { return std::string(name); }
  [[nodiscard]] Result<std::string> read(const Value& value) const;
  [[nodiscard]] std::string print(const std::string& value) const { return value; }
};

/// One of a few words.
template <class Enum>
struct OneOf {
  std::vector<std::pair<std::string_view, Enum>> choices;

  [[nodiscard]] std::string type() const {
    std::string names;
    for (const auto& [name, choice] : choices) names += (names.empty() ? "" : "|") + std::string(name);
    return names;
  }
  [[nodiscard]] Result<Enum> read(const Value& value) const {
    const auto text = value.text();
    if (!text) return std::unexpected(text.error());
    for (const auto& [name, choice] : choices)
      if (name == *text) return choice;
    return std::unexpected(value.error('"' + *text + "\" is none of " + type()));
  }
  [[nodiscard]] std::string print(Enum value) const {
    for (const auto& [name, choice] : choices)
      if (choice == value) return std::string(name);
    return {};
  }
};

/// A list, each of whose items is written as a text.
template <class Item>
struct ListOf {
  std::string_view name;
  Result<Item> (*parse)(std::string_view);
  std::string (*print_item)(const Item&);

  [[nodiscard]] std::string type() const { return std::string(name); }
  [[nodiscard]] Result<std::vector<Item>> read(const Value& value) const {
    const auto texts = read_texts(value);
    if (!texts) return std::unexpected(texts.error());
    std::vector<Item> items;
    for (const auto& [text, at] : *texts) {
      auto item = parse(text);
      if (!item) return std::unexpected(at.error(item.error()));
      items.push_back(*std::move(item));
    }
    return items;
  }
  [[nodiscard]] std::string print(const std::vector<Item>& items) const {
    std::string text;
    for (const auto& item : items) text.append(text.empty() ? "" : " ").append(as_word(print_item(item)));
    return text;
  }
};

/// A list of "KEY=VALUE", no key twice.
struct MapOf {
  using Entry = std::pair<std::string, std::string>;
  using Map = std::map<std::string, std::string, std::less<>>;

  std::string_view name;
  Result<Entry> (*parse)(std::string_view);

  [[nodiscard]] std::string type() const { return std::string(name); }
  [[nodiscard]] Result<Map> read(const Value& value) const;
  [[nodiscard]] std::string print(const Map& map) const;
};

/// From the root; repeated slashes and those at the end go.
[[nodiscard]] Result<std::string> normal_absolute_path(std::string_view text);
/// At least one name, without slashes around it.
[[nodiscard]] Result<std::string> normal_relative_path(std::string_view text);
/// "unix:///run/containerd/containerd.sock"; the path must fit a socket address.
[[nodiscard]] Result<std::string> unix_endpoint(std::string_view text);
/// The same, or "auto".
[[nodiscard]] Result<std::string> unix_endpoint_or_auto(std::string_view text);
/// An absolute path, or "".
[[nodiscard]] Result<std::string> path_or_none(std::string_view text);
/// An absolute path, "auto" or "".
[[nodiscard]] Result<std::string> path_or_auto_or_none(std::string_view text);
/// "https://HOST[:PORT][/PATH]" or the same with http, or "". Slashes at the end go.
[[nodiscard]] Result<std::string> url_or_none(std::string_view text);
/// An absolute path; those of the sockets in it must fit a socket address.
[[nodiscard]] Result<std::string> directory_of_sockets(std::string_view text);
[[nodiscard]] Result<std::string> anything(std::string_view text);

inline constexpr Text path{"absolute path", normal_absolute_path};
inline constexpr Text cgroup{"absolute cgroup path", normal_absolute_path};
inline constexpr Text relative_cgroup{"relative cgroup path", normal_relative_path};
inline constexpr Text endpoint_or_auto{"unix socket URL or auto", unix_endpoint_or_auto};
inline constexpr Text socket_directory{"absolute path", directory_of_sockets};
inline constexpr Text optional_path{"absolute path or \"\"", path_or_none};
inline constexpr Text path_or_auto{"absolute path, auto or \"\"", path_or_auto_or_none};
inline constexpr Text optional_url{"http or https URL or \"\"", url_or_none};
inline constexpr Text text{"text", anything};

}  // namespace evictd::config::kinds
