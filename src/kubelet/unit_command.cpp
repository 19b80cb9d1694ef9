#include "kubelet/unit_command.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "config/yaml.hpp"
#include "os/below_root.hpp"

namespace evictd::kubelet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view blanks = " \t";
constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Where a unit's files lie; what stands first covers what has the same name behind it.
constexpr std::array unit_places{"etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system",
                                 "usr/lib/systemd/system", "lib/systemd/system"};

/// The unit's file, and behind it its drop-ins by their names.
std::vector<fs::path> files_of(const std::string& unit, const fs::path& root) {
  std::vector<fs::path> files;
  std::map<std::string, fs::path> drop_ins;
  std::error_code error;
  for (const auto* place : unit_places) {
    const auto directory = root / place;
    if (files.empty() && fs::is_regular_file(directory / unit, error)) files.push_back(directory / unit);
    for (fs::directory_iterator entry{directory / (unit + ".d"), error}; !error && entry != fs::directory_iterator{};
         entry.increment(error))
      if (entry->path().extension() == ".conf" && entry->is_regular_file(error))
        drop_ins.emplace(entry->path().filename(), entry->path());
  }
  if (!files.empty())
    for (auto& [name, file] : drop_ins) files.push_back(std::move(file));
  return files;
}

/// The lines of a unit's file: one that ends with a backslash goes on in the next, and comments between do not count.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  bool goes_on = false;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    const bool is_comment = line.starts_with('#') || line.starts_with(';');
    if (is_comment) continue;
    const bool continued = line.ends_with('\\');
    if (continued) line.remove_suffix(1);
    if (goes_on)
      lines.back().append(" ").append(line);
    else
      lines.emplace_back(line);
    goes_on = continued;
  }
  return lines;
}

struct Setting {
  std::string name;
  std::string value;
};

/// Of all sections, in the order in which they count.
std::vector<Setting> settings_in(const std::vector<fs::path>& files) {
  std::vector<Setting> settings;
  for (const auto& file : files) {
    const auto text = config::read_text_file(file);
    if (!text) continue;
    for (const std::string_view line : lines_of(*text)) {
      const auto equals = line.find('=');
      if (equals == std::string_view::npos) continue;
      const auto name = line.substr(0, equals);
      settings.push_back(
          {std::string(name.substr(0, name.find_last_not_of(blanks) + 1)), std::string(line.substr(equals + 1))});
    }
  }
  return settings;
}

/// The command of the last ExecStart= that holds one; an empty one takes those before it away.
std::string exec_start(const std::vector<Setting>& settings) {
  std::string command;
  for (const auto& [name, value] : settings)
    if (name == "ExecStart") command = value;
  return command;
}

/// What a backslash and the letter behind it stand for; absent: not told here.
std::optional<char> unescaped(char letter) {
  switch (letter) {
    case 's': return ' ';
    case 't': return '\t';
    case 'n': return '\n';
    case '\\':
    case '"':
    case '\'': return letter;
    default: return std::nullopt;
  }
}

/// Takes a command apart, character by character.
class Words {
 public:
  /// Absent where it holds what only systemd can tell.
  std::optional<std::vector<std::string>> of(std::string_view command) {
    for (; !command.empty(); command.remove_prefix(1))
      if (!take(command)) return std::nullopt;
    if (quote_ != '\0') return std::nullopt;
    end_word();
    return std::move(words_);
  }

 private:
  /// May take more than the first character.
  bool take(std::string_view& rest) {
    const char first = rest.front();
    const char second = rest.size() > 1 ? rest[1] : '\0';
    if (first == '\\') {
      const auto meant = unescaped(second);
      if (meant) add(*meant);
      rest.remove_prefix(1);
      return meant.has_value();
    }
    if (first == '%' || first == '$') {
      const bool is_itself = second == first;
      if (is_itself) rest.remove_prefix(1);
      add(first);
      return is_itself || (letters.find(second) == std::string_view::npos && second != '{' && second != '_');
    }
    if (first == quote_) {
      quote_ = '\0';
    } else if (quote_ == '\0' && (first == '"' || first == '\'')) {
      quote_ = first;
      in_word_ = true;
    } else if (quote_ == '\0' && blanks.find(first) != std::string_view::npos) {
      end_word();
    } else {
      add(first);
    }
    return true;
  }

  void add(char character) {
    word_ += character;
    in_word_ = true;
  }

  void end_word() {
    if (std::exchange(in_word_, false)) words_.push_back(std::exchange(word_, {}));
  }

  std::vector<std::string> words_;
  std::string word_;
  bool in_word_ = false;
  char quote_ = '\0';  // within which one it is
};

/// Of a service's environment that evictd asks for.
constexpr std::string_view asked_for = "K3S_";

void add_variable(std::string_view assignment, UnitCommand::Variables& variables) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos || !assignment.starts_with(asked_for)) return;
  variables.insert_or_assign(std::string(assignment.substr(0, equals)), std::string(assignment.substr(equals + 1)));
}

/// A file of EnvironmentFile=; false: what it says cannot be told.
bool add_variables_of(const fs::path& file, UnitCommand::Variables& variables) {
  const auto text = config::read_text_file(file);
  if (!text) return false;
  for (const std::string_view line : lines_of(*text)) {
    if (!line.starts_with(asked_for)) continue;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    auto value = line.substr(equals + 1);
    value = value.substr(0, value.find_last_not_of(blanks) + 1);
    const bool quoted = value.size() > 1 && value.front() == value.back() && (value[0] == '"' || value[0] == '\'');
    if (quoted) value = value.substr(1, value.size() - 2);
    if (value.find_first_of("\"'\\") != std::string_view::npos) return false;
    add_variable(std::string(line.substr(0, equals + 1)).append(value), variables);
  }
  return true;
}

/// The path of an EnvironmentFile=, absent where only systemd can tell it.
std::optional<fs::path> environment_file(std::string_view value, const std::string& unit, const fs::path& root) {
  if (value.starts_with('-')) value.remove_prefix(1);
  std::string path{value.substr(0, value.find_last_not_of(blanks) + 1)};
  const std::pair<std::string_view, std::string> specifiers[]{{"%N", fs::path(unit).stem()}, {"%n", unit}};
  for (const auto& [specifier, meant] : specifiers)
    if (const auto at = path.find(specifier); at != std::string::npos) path.replace(at, specifier.size(), meant);
  if (!path.starts_with('/') || path.find_first_of("%*?[") != std::string::npos) return std::nullopt;
  return os::below_root(root, path);
}

/// Fills in what the service's environment has of `asked_for`; false: it cannot be told. Its files go before its own
/// settings (systemd.exec(5)).
bool read_environment(const std::vector<Setting>& settings, const std::string& unit, const fs::path& root,
                      UnitCommand& command) {
  std::vector<std::string> own;
  std::vector<fs::path> files;
  bool is_known = true;
  for (const auto& [name, value] : settings) {
    const bool is_empty = value.find_first_not_of(blanks) == std::string::npos;
    if (name == "Environment") {
      if (is_empty) own.clear();
      auto words = Words{}.of(value);
      if (!words && value.contains(asked_for)) return false;
      if (words) own.insert(own.end(), words->begin(), words->end());
    } else if (name == "EnvironmentFile") {
      if (is_empty) files.clear();
      if (is_empty) continue;
      auto file = environment_file(value, unit, root);
      if (!file) return false;
      files.push_back(*std::move(file));
    }
  }
  for (const auto& word : own) add_variable(word, command.variables);
  std::error_code ignored;
  for (const auto& file : files) {
    if (!fs::exists(file, ignored)) continue;
    is_known = is_known && fs::is_regular_file(file, ignored) && add_variables_of(file, command.variables);
    command.files.push_back(file);
  }
  return is_known;
}

}  // namespace

std::optional<UnitCommand> command_of(const std::string& unit, const fs::path& root) {
  if (unit.empty()) return std::nullopt;
  auto files = files_of(unit, root);
  const auto settings = settings_in(files);
  auto words = Words{}.of(exec_start(settings));
  if (!words || words->empty()) return std::nullopt;
  words->erase(words->begin());
  UnitCommand command{.arguments = *std::move(words), .variables = {}, .files = std::move(files)};
  if (!read_environment(settings, unit, root, command)) return std::nullopt;
  return command;
}

}  // namespace evictd::kubelet
