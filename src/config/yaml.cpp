#include "config/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <boost/json/value.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <set>
#include <system_error>
#include <utility>

#include "config/document_progress.hpp"
#include "core/printable.hpp"

namespace evictd::config {
namespace {

// yaml-cpp counts from 0.
int line_of(const YAML::Mark& mark) { return mark.line < 0 ? 1 : mark.line + 1; }

/// What yaml-cpp tells a plain scalar by; a quoted one has "!".
bool is_quoted(const YAML::Node& node) { return node.Tag() == "!"; }

std::string quote(std::string_view text) {
  constexpr std::size_t longest = 80;
  return text.size() <= longest ? fmt::format("\"{}\"", text) : fmt::format("\"{}…\"", core::beginning(text, longest));
}

std::unexpected<Error> malformed(std::string_view origin, const YAML::Mark& mark, std::string_view what) {
  return std::unexpected(
      Error{core::printable(fmt::format("{}:{}: {}", origin, line_of(mark), what)), mark.column + 1});
}

/// An entry or an item takes some 200 bytes; in the text it takes 2 at least, and some 20 usually.
constexpr std::size_t cost_of_value = 16;

std::unexpected<Error> too_large(std::string_view origin, std::size_t largest = max_file_size) {
  return fail(fmt::format("{}: is larger than {} KiB, more than a configuration can be", origin, largest / 1024));
}

}  // namespace

Value::Value(const YAML::Node& node, std::string origin)
    : Value(node, std::make_shared<Source>(std::move(origin)), {}, place_of(node.Mark(), {})) {}

Value::Value(const YAML::Node& node, std::shared_ptr<Source> source, std::string path, Place place)
    : node_(std::make_shared<const YAML::Node>(node)),
      source_(std::move(source)),
      path_(std::move(path)),
      place_(place) {}

Value::Place Value::place_of(const YAML::Mark& mark, Place otherwise) {
  return mark.line < 0 ? otherwise : Place{mark.line + 1, mark.column + 1};
}

std::string Value::where() const {
  return place_.line > 0 ? fmt::format("{}:{}", source_->name, place_.line) : source_->name;
}

Error Value::error(std::string_view what) const {
  const Error inner{path_.empty() ? std::string(what) : fmt::format("{}: {}", path_, what), place_.column};
  auto error = inner.in(where());
  // Keys and values are whatever the document's author likes.
  error.message = core::printable(error.message);
  return error;
}

Value Value::forgiving(std::string origin) const {
  auto root = *this;
  root.source_ = std::make_shared<Source>(*source_);
  root.source_->name = std::move(origin);
  root.source_->forgiving = true;
  root.source_->forgiven.reset();
  root.path_.clear();
  return root;
}

bool Value::forgives(const Error& error) const {
  if (source_->forgiving && !source_->forgiven) source_->forgiven = error;
  return source_->forgiving;
}

bool Value::is_null() const { return json_ != nullptr ? json_->is_null() : node_->IsNull(); }

std::string Value::shown() const {
  if (json_ != nullptr) {
    if (json_->is_object()) return "a mapping";
    if (json_->is_array()) return "a list";
    return json_->is_null() ? "nothing" : quote(*json_text());
  }
  if (node_->IsMap()) return "a mapping";
  if (node_->IsSequence()) return "a list";
  return node_->IsScalar() ? quote(node_->Scalar()) : "nothing";
}

Result<void> Value::spend(std::size_t bytes) const {
  auto& left = source_->left;
  if (!left) return {};
  if (bytes > *left) return std::unexpected(error("says more through aliases than a document may"));
  *left -= bytes;
  return {};
}

Result<std::string> Value::scalar() const {
  const auto& text = node_->Scalar();
  if (auto spent = spend(text.size()); !spent) return std::unexpected(spent.error());
  return text;
}

Result<std::string> Value::text() const {
  if (json_ != nullptr) {
    if (auto text = json_text()) return *std::move(text);
    return std::unexpected(error(shown() + " stands where text is expected"));
  }
  if (!node_->IsScalar()) return std::unexpected(error(shown() + " stands where text is expected"));
  return scalar();
}

Result<std::string> Value::plain_scalar(std::string_view expected) const {
  const bool is_scalar = json_ != nullptr ? json_text().has_value() : node_->IsScalar();
  if (!is_scalar) return std::unexpected(error(fmt::format("{} stands where {} is expected", shown(), expected)));
  if (json_ != nullptr ? json_->is_string() : is_quoted(*node_))
    return std::unexpected(error(fmt::format("{} is text, not {}: remove the quotes", shown(), expected)));
  if (json_ != nullptr) return *json_text();
  return scalar();
}

Result<bool> Value::boolean() const {
  const auto text = plain_scalar("true or false");
  if (!text) return std::unexpected(text.error());
  bool value = false;
  if (json_ != nullptr && json_->is_bool()) return json_->get_bool();
  if (json_ != nullptr || !YAML::convert<bool>::decode(*node_, value))
    return std::unexpected(error(quote(*text) + " is not true or false"));
  return value;
}

Result<std::int64_t> Value::integer(std::int64_t min, std::int64_t max) const {
  const auto text = plain_scalar("a whole number");
  if (!text) return std::unexpected(text.error());
  const auto* first = text->data();
  const auto* last = first + text->size();
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(first, last, value);
  if (code == std::errc::invalid_argument || end != last)
    return std::unexpected(error(quote(*text) + " is not a whole number"));
  if (code != std::errc{} || value < min || value > max)
    return std::unexpected(error(fmt::format("{} is out of range: {} to {}", quote(*text), min, max)));
  return value;
}

Result<core::Duration> Value::duration() const {
  const auto text = this->text();
  if (!text) return std::unexpected(text.error());
  const auto value = core::parse_duration(*text);
  if (!value) return std::unexpected(error(value.error()));
  return *value;
}

Result<core::Quantity> Value::quantity() const {
  const auto text = this->text();
  if (!text) return std::unexpected(text.error());
  auto value = core::Quantity::parse(*text);
  if (!value) return std::unexpected(error(value.error()));
  return *std::move(value);
}

Result<std::vector<Value>> Value::items() const {
  if (json_ != nullptr && json_->is_array()) return json_items();
  if (json_ != nullptr || !node_->IsSequence())
    return std::unexpected(error(shown() + " stands where a list is expected"));
  const auto count = node_->size();
  if (auto spent = spend(count * cost_of_value); !spent) return std::unexpected(spent.error());
  std::vector<Value> values;
  values.reserve(count);
  for (const auto& item : *node_)
    values.push_back(Value(item, source_, fmt::format("{}[{}]", path_, values.size()), place_of(item.Mark(), place_)));
  return values;
}

Result<std::vector<Value::Entry>> Value::entries(std::string_view separator) const {
  if (json_ != nullptr && json_->is_object()) return json_entries(separator);
  if (json_ != nullptr || !node_->IsMap())
    return std::unexpected(error(shown() + " stands where a mapping is expected"));
  std::vector<Entry> entries;
  std::set<std::string_view> seen;
  const auto count = node_->size();
  if (auto spent = spend(count * cost_of_value); !spent) return std::unexpected(spent.error());
  entries.reserve(count);
  for (const auto& pair : *node_) {
    const auto place = place_of(pair.first.Mark(), place_);
    if (!pair.first.IsScalar())
      return std::unexpected(Value(pair.first, source_, path_, place).error("a key must be a single word"));
    const auto& key = pair.first.Scalar();
    if (auto spent = spend(key.size()); !spent) return std::unexpected(spent.error());
    Value value(pair.second, source_, path_.empty() ? key : fmt::format("{}{}{}", path_, separator, key), place);
    if (key == "<<" && !is_quoted(pair.first))
      return std::unexpected(value.error("merge keys are not supported: write the entries out"));
    if (!seen.insert(key).second) return std::unexpected(value.error("stands here a second time"));
    entries.push_back({key, std::move(value)});
  }
  return entries;
}

Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t largest) {
  const auto failed = [&](int code) {
    return fail(fmt::format("{}: cannot be read: {}", path.string(), std::generic_category().message(code)));
  };
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (!file) return failed(errno);

  std::string text;
  std::array<char, 16384> buffer;
  while (text.size() <= largest && std::feof(file.get()) == 0) {
    const auto count = std::fread(buffer.data(), 1, buffer.size(), file.get());
    text.append(buffer.data(), count);
    if (std::ferror(file.get()) != 0) return failed(errno);
  }
  if (text.size() <= largest) return text;
  return too_large(path.string(), largest);
}

Result<std::vector<Value>> parse_yaml_documents(std::string_view text, std::string_view origin) try {
  if (text.size() > max_file_size) return too_large(origin);
  // What was read is shown as JSON and sent by protobuf, and neither carries anything else.
  if (const auto valid = core::valid_utf8(text); valid < text.size()) {
    const auto lines = std::ranges::count(text.substr(0, valid), '\n');
    return fail(core::printable(fmt::format("{}:{}: is not UTF-8", origin, lines + 1)));
  }
  check_progress(text);
  const auto source = std::make_shared<Value::Source>(std::string(origin));
  if (text.contains('*')) source->left = 4 * text.size() + (std::size_t{256} << 10);
  std::vector<Value> documents;
  for (const auto& document : YAML::LoadAll(std::string(text)))
    if (document.IsDefined() && !document.IsNull())
      documents.push_back(Value(document, source, {}, Value::place_of(document.Mark(), {})));
  return documents;
} catch (const YAML::DeepRecursion& error) {
  return malformed(origin, error.mark, "is nested too deeply");
} catch (const YAML::Exception& error) {
  return malformed(origin, error.mark, error.msg);
}

Result<Value> parse_yaml(std::string_view text, std::string_view origin) {
  const auto documents = parse_yaml_documents(text, origin);
  if (!documents) return std::unexpected(documents.error());
  if (documents->size() > 1) return std::unexpected(documents->at(1).error("a second document; a file holds one"));
  return documents->empty() ? Value(YAML::Node(), std::string(origin)) : documents->front();
}

Result<void> check_header(const Value& document, std::string_view api_version, std::string_view kind) {
  const auto entries = document.entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [name, expected] : {std::pair{"apiVersion", api_version}, std::pair{"kind", kind}}) {
    const Value* found = nullptr;
    for (const auto& entry : *entries)
      if (entry.key == name && !entry.value.is_null()) found = &entry.value;
    if (found == nullptr)
      return std::unexpected(document.error(fmt::format("{} is missing: write \"{}: {}\"", name, name, expected)));
    const auto text = found->text();
    if (!text) return std::unexpected(text.error());
    if (*text != expected)
      return std::unexpected(found->error(fmt::format("{} where \"{}\" is expected", quote(*text), expected)));
  }
  return {};
}

}  // namespace evictd::config
