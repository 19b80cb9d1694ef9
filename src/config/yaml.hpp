#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/quantity.hpp"

namespace boost::json {
class value;
}
// Its headers stay in yaml.cpp: 40 files include this one.
namespace YAML {
struct Mark;
class Node;
}  // namespace YAML

namespace evictd::config {

/// A larger file is no configuration. The bound also keeps the parser's work, even on hostile text, within about a
/// second.
inline constexpr std::size_t max_file_size = std::size_t{1} << 20;

/// A value of a YAML or JSON document that knows where it stands, so that every error about it can say
/// `/etc/evictd/agent.yaml:12: http.page: "maybe" is not true or false`.
///
/// Values are converted on request and each conversion looks at one level only: aliases stay shared, and a document of
/// nested aliases costs no more than its text. Where aliases have the same text or list converted again and again, all
/// conversions together yield about four times the size of the YAML text and 256 KiB: beyond that each one is an error.
/// The values of one text count together, so they belong to one thread at a time.
class Value {
 public:
  /// The root of a document. `origin`: the file's name as the operator wrote it.
  Value(const YAML::Node& node, std::string origin);
  /// The root of a JSON document (config/json.hpp). Not null.
  Value(std::shared_ptr<const boost::json::value> document, std::string origin, std::size_t most_elements);

  /// An absent value: nothing, `null` or `~`. Kubernetes takes it for a key that is not there.
  [[nodiscard]] bool is_null() const;
  /// "http.page"; empty for the root.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The line of the value's key (or of the list's item), from 1; 0 in JSON, which is read without lines.
  [[nodiscard]] int line() const { return place_.line; }

  /// "FILE:LINE", or "FILE" where there are no lines.
  [[nodiscard]] std::string where() const;
  /// "FILE:LINE: PATH: what", with the column beside the message; JSON without both. Always one printable line.
  [[nodiscard]] Error error(std::string_view what) const;
  /// The same for an error found elsewhere.
  [[nodiscard]] Error error(const Error& error) const { return this->error(error.message); }

  /// Any scalar. Numbers and the like are taken as they are written.
  [[nodiscard]] Result<std::string> text() const;
  [[nodiscard]] Result<bool> boolean() const;
  /// A whole number from `min` to `max`, without quotes.
  [[nodiscard]] Result<std::int64_t> integer(std::int64_t min, std::int64_t max) const;
  [[nodiscard]] Result<core::Duration> duration() const;
  [[nodiscard]] Result<core::Quantity> quantity() const;
  [[nodiscard]] Result<std::vector<Value>> items() const;
  /// To be asked before a list or mapping is read of which every element is kept: whether it has no more than are left
  /// of those that its JSON document may have (parse_json). They count from then on.
  [[nodiscard]] Result<void> take_elements() const;

  /// The same value as a text of its own, by the name of `origin`, in which a field that cannot be read costs only
  /// itself: its reader (config/fields.hpp) passes over it.
  [[nodiscard]] Value forgiving(std::string origin) const;
  /// Whether the text is one of those. The first error is kept.
  [[nodiscard]] bool forgives(const Error& error) const;
  /// What was the first to be forgiven in the text.
  [[nodiscard]] const std::optional<Error>& forgiven() const { return source_->forgiven; }

  struct Entry;
  /// The entries of a mapping in their order. A key that stands there twice is an error. `separator` stands between
  /// this path and the key.
  [[nodiscard]] Result<std::vector<Entry>> entries(std::string_view separator = ".") const;

 private:
  /// Of a JSON document's lists and mappings.
  struct Elements {
    std::size_t most = std::numeric_limits<std::size_t>::max();
    std::size_t taken = 0;
  };
  /// What all values of one text have in common.
  struct Source {
    std::string name;
    std::optional<std::size_t> left{};  ///< bytes that may yet be converted; none: it has no aliases, or is JSON
    Elements elements{};
    bool forgiving = false;
    std::optional<Error> forgiven{};
  };
  /// In a text; counted from 1.
  struct Place {
    int line = 1;
    int column = 1;
  };

  friend Result<std::vector<Value>> parse_yaml_documents(std::string_view text, std::string_view origin);
  Value(const YAML::Node& node, std::shared_ptr<Source> source, std::string path, Place place);
  [[nodiscard]] static Place place_of(const YAML::Mark& mark, Place otherwise);
  Value(const boost::json::value& json, const Value& parent, std::string path);
  [[nodiscard]] std::string shown() const;
  [[nodiscard]] Result<void> spend(std::size_t bytes) const;
  [[nodiscard]] Result<std::string> scalar() const;
  [[nodiscard]] Result<std::string> plain_scalar(std::string_view expected) const;
  [[nodiscard]] std::optional<std::string> json_text() const;
  [[nodiscard]] std::vector<Value> json_items() const;
  [[nodiscard]] std::vector<Entry> json_entries(std::string_view separator) const;

  std::shared_ptr<const YAML::Node> node_;              // null: JSON
  std::shared_ptr<const boost::json::value> document_;  // of a JSON value; null: YAML
  const boost::json::value* json_ = nullptr;            // in it
  std::shared_ptr<Source> source_;
  std::string path_;
  Place place_;
};

struct Value::Entry {
  std::string key;
  Value value;
};

/// The text of a file of at most `largest` bytes. Error: "FILE: cannot be read: No such file or directory".
[[nodiscard]] Result<std::string> read_text_file(const std::filesystem::path& path,
                                                 std::size_t largest = max_file_size);

/// Every document of a text but the empty ones. Malformed YAML, and what is not UTF-8, is "FILE:LINE: …".
[[nodiscard]] Result<std::vector<Value>> parse_yaml_documents(std::string_view text, std::string_view origin);

/// The single document of a text; an empty one is null. Malformed YAML is "FILE:LINE: …".
[[nodiscard]] Result<Value> parse_yaml(std::string_view text, std::string_view origin);

/// Whether the document is what it must be. `apiVersion` and `kind` are required.
[[nodiscard]] Result<void> check_header(const Value& document, std::string_view api_version, std::string_view kind);

}  // namespace evictd::config
