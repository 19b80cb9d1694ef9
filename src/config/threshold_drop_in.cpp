#include "config/threshold_drop_in.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <utility>

#include "config/nearest.hpp"
#include "config/yaml.hpp"
#include "core/signal.hpp"

namespace evictd::config {
namespace {

using core::EvictionSettings;
using core::ThresholdOverlay;

constexpr std::string_view header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

/// Settings that hold nothing but this entry, and what it takes for the entry to be right.
EvictionSettings alone(std::string_view key, const std::string& signal, const std::string& value) {
  EvictionSettings settings;
  settings.hard.emplace();
  if (key == "evictionHard") settings.hard->emplace(signal, value);
  if (key == "evictionMinimumReclaim") settings.minimum_reclaim.emplace(signal, value);
  const bool grace = key == "evictionSoftGracePeriod";
  if (key != "evictionSoft" && !grace) return settings;
  settings.soft.emplace(signal, grace ? "1" : value);
  settings.soft_grace_period.emplace(signal, grace ? value : "1m");
  return settings;
}

struct OverlayField {
  std::string_view key;
  ThresholdOverlay::BySignal ThresholdOverlay::* entries;
};

constexpr std::array<OverlayField, 4> overlay_fields{{{"evictionHard", &ThresholdOverlay::hard},
                                                      {"evictionSoft", &ThresholdOverlay::soft},
                                                      {"evictionSoftGracePeriod", &ThresholdOverlay::soft_grace_period},
                                                      {"evictionMinimumReclaim", &ThresholdOverlay::minimum_reclaim}}};

/// "evictionHard: memory.available: what" without what the place of the entry says already.
std::string without_path(std::string_view message, std::string_view key, std::string_view signal) {
  const auto path = fmt::format("{}: {}: ", key, signal);
  return std::string(message.starts_with(path) ? message.substr(path.size()) : message);
}

Result<std::optional<std::string>> read_entry(const OverlayField& field, const std::string& signal,
                                              const Value& value) {
  if (!core::parse_signal(signal))
    return std::unexpected(value.error("no such signal" + did_you_mean(signal, core::signal_names())));
  if (value.is_null()) return std::nullopt;
  auto text = value.text();
  if (!text) return std::unexpected(text.error());
  if (const auto policy = core::make_policy(alone(field.key, signal, *text)); !policy)
    return std::unexpected(value.error(without_path(policy.error().message, field.key, signal)));
  return *std::move(text);
}

Result<void> read_field(const OverlayField& field, const Value& mapping, ThresholdOverlay& overlay) {
  if (mapping.is_null()) return {};
  const auto entries = mapping.entries(": ");
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [signal, value] : *entries) {
    auto entry = read_entry(field, signal, value);
    if (!entry) return std::unexpected(entry.error());
    (overlay.*field.entries).insert_or_assign(signal, *std::move(entry));
  }
  return {};
}

std::string unknown_key(std::string_view key) {
  std::vector<std::string_view> names;
  for (const auto& field : overlay_fields) names.push_back(field.key);
  const auto hint = did_you_mean(key, names);
  return hint.empty() ? "unknown key: a drop-in holds evictionHard, evictionSoft, evictionSoftGracePeriod and "
                        "evictionMinimumReclaim"
                      : "unknown key" + hint;
}

bool is_drop_in(const std::filesystem::path& path) {
  const auto extension = path.extension();
  return !path.filename().native().starts_with('.') && (extension == ".yaml" || extension == ".yml");
}

template <class Entries>
void print_entries(std::string& text, std::string_view key, const Entries& entries, auto value_text) {
  if (entries.empty()) return;
  text += fmt::format("{}:\n", key);
  for (const auto& [signal, value] : entries) text += fmt::format("  {}: {}\n", signal, value_text(value));
}

/// Quoted, for "1e3" and the like would read as a number to other programs. What is in it was read as a quantity or a
/// duration: there is nothing to escape.
std::string quoted(const std::string& value) { return '"' + value + '"'; }

}  // namespace

Result<ThresholdOverlay> parse_threshold_drop_in(std::string_view text, std::string_view origin) {
  const auto document = parse_yaml(text, origin);
  if (!document) return std::unexpected(document.error());
  if (document->is_null()) return ThresholdOverlay{};
  if (const auto checked = check_header(*document, "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"); !checked)
    return std::unexpected(checked.error());
  const auto entries = document->entries();
  if (!entries) return std::unexpected(entries.error());
  ThresholdOverlay overlay;
  for (const auto& [key, value] : *entries) {
    if (key == "apiVersion" || key == "kind") continue;
    const auto field = std::ranges::find(overlay_fields, key, &OverlayField::key);
    if (field == overlay_fields.end()) return std::unexpected(value.error(unknown_key(key)));
    if (const auto result = read_field(*field, value, overlay); !result) return std::unexpected(result.error());
  }
  return overlay;
}

Result<std::vector<ThresholdDropIn>> load_threshold_drop_ins(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (is_drop_in(entry->path())) paths.push_back(entry->path());
  if (error == std::errc::no_such_file_or_directory) return {};
  if (error) return fail(fmt::format("{}: cannot be read: {}", directory.string(), error.message()));
  std::ranges::sort(paths);

  std::vector<ThresholdDropIn> drop_ins;
  for (const auto& path : paths) {
    const auto text = read_text_file(path);
    if (!text) return std::unexpected(text.error());
    auto overlay = parse_threshold_drop_in(*text, path.string());
    if (!overlay) return std::unexpected(overlay.error());
    drop_ins.push_back({.name = path.filename(), .overlay = *std::move(overlay)});
  }
  return drop_ins;
}

std::string print_threshold_drop_in(const ThresholdOverlay& overlay) {
  std::string text{header};
  for (const auto& field : overlay_fields)
    print_entries(text, field.key, overlay.*field.entries,
                  [](const std::optional<std::string>& value) { return value ? quoted(*value) : "null"; });
  return text;
}

std::string print_thresholds(const EvictionSettings& settings) {
  std::string text{header};
  const auto hard = core::hard_in_force(settings);
  print_entries(text, "evictionHard", hard, quoted);
  if (hard.empty()) text += "evictionHard: {}\n";
  print_entries(text, "evictionSoft", settings.soft, quoted);
  print_entries(text, "evictionSoftGracePeriod", settings.soft_grace_period, quoted);
  print_entries(text, "evictionMinimumReclaim", settings.minimum_reclaim, quoted);
  return text;
}

}  // namespace evictd::config
