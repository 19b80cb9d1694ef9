#include "kubelet/unit_command.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "config/yaml.hpp"

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

/// The command of the last ExecStart= that holds one; an empty one takes those before it away.
std::string exec_start(const std::vector<fs::path>& files) {
  constexpr std::string_view key = "ExecStart";
  std::string command;
  for (const auto& file : files) {
    const auto text = config::read_text_file(file);
    if (!text) continue;
    for (const std::string_view line : lines_of(*text)) {
      const auto equals = line.find('=');
      if (equals == std::string_view::npos) continue;
      const auto name = line.substr(0, equals);
      if (name.substr(0, name.find_last_not_of(blanks) + 1) == key) command = line.substr(equals + 1);
    }
  }
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

}  // namespace

std::optional<UnitCommand> command_of(const std::string& unit, const fs::path& root) {
  if (unit.empty()) return std::nullopt;
  auto files = files_of(unit, root);
  auto words = Words{}.of(exec_start(files));
  if (!words || words->empty()) return std::nullopt;
  words->erase(words->begin());
  return UnitCommand{.arguments = *std::move(words), .files = std::move(files)};
}

}  // namespace evictd::kubelet
