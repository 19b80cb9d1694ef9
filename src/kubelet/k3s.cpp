#include "kubelet/k3s.hpp"

#include <algorithm>
#include <expected>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "config/yaml.hpp"
#include "kubelet/unit_command.hpp"
#include "os/below_root.hpp"

namespace evictd::kubelet {
namespace {

namespace fs = std::filesystem;
using os::below_root;

constexpr std::string_view usual_configuration = "/etc/rancher/k3s/config.yaml";
constexpr std::string_view usual_data = "/var/lib/rancher/k3s";

/// The values of a flag of k3s by one of its names, "--name=value" or "--name value".
std::vector<std::string> values_of(const std::vector<std::string>& arguments,
                                   std::initializer_list<std::string> names) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    for (const auto& name : names) {
      if (arguments[i] == name && i + 1 < arguments.size()) values.push_back(arguments[i + 1]);
      if (arguments[i].starts_with(name + '=')) values.push_back(arguments[i].substr(name.size() + 1));
    }
  return values;
}

/// The file, and those of the directory beside it in the order of their names.
std::vector<fs::path> configuration_files(const fs::path& file) {
  std::vector<fs::path> files{file};
  std::error_code error;
  for (fs::directory_iterator entry{file.native() + ".d", error}; !error && entry != fs::directory_iterator{};
       entry.increment(error)) {
    const auto extension = entry->path().extension();
    if (extension == ".yaml" || extension == ".yml") files.push_back(entry->path());
  }
  std::sort(files.begin() + 1, files.end());
  std::erase_if(files, [](const fs::path& path) {
    std::error_code ignored;
    return !fs::is_regular_file(path, ignored);
  });
  return files;
}

/// What a value of the configuration is as a flag's: a list gives one for each entry.
Result<std::vector<std::string>> texts_of(const config::Value& value) {
  std::vector<config::Value> items{value};
  if (auto entries = value.items()) items = *std::move(entries);
  std::vector<std::string> texts;
  for (const auto& item : items) {
    auto text = item.text();
    if (!text) return std::unexpected(text.error());
    texts.push_back(*std::move(text));
  }
  return texts;
}

/// A later file's key takes the place of an earlier one's, "key+" adds to it.
Result<void> read_configuration(const fs::path& file, K3s& k3s, std::optional<std::string>& data) {
  const auto text = config::read_text_file(file);
  if (!text) return std::unexpected(text.error());
  const auto document = config::parse_yaml(*text, file.native());
  if (!document) return std::unexpected(document.error());
  k3s.files.push_back(file);
  if (document->is_null()) return {};
  const auto entries = document->entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [key, value] : *entries) {
    const bool is_argument = key == "kubelet-arg" || key == "kubelet-arg+";
    if (!is_argument && key != "data-dir") continue;
    auto texts = texts_of(value);
    if (!texts) return std::unexpected(texts.error());
    if (key == "kubelet-arg") k3s.arguments.clear();
    if (is_argument)
      k3s.arguments.insert(k3s.arguments.end(), texts->begin(), texts->end());
    else if (!texts->empty())
      data = texts->back();
  }
  return {};
}

}  // namespace

Result<K3s> find_k3s(const Process& process, const fs::path& root) {
  K3s k3s;
  auto command = command_of(process.unit, root);
  k3s.is_whole = command.has_value();
  if (!command) command.emplace();
  k3s.files = std::move(command->files);
  const auto variable = [&](std::string_view name) {
    const auto found = command->variables.find(name);
    return found != command->variables.end() ? std::optional{found->second} : std::nullopt;
  };
  const auto named = values_of(command->arguments, {"--config", "-c"});
  const auto told_file = named.empty() ? variable("K3S_CONFIG_FILE") : std::optional{named.back()};
  auto data = variable("K3S_DATA_DIR");
  const auto files = configuration_files(below_root(root, told_file.value_or(std::string(usual_configuration))));
  // configuration_files() leaves out what is not there: k3s would not have started.
  if (told_file && (files.empty() || files.front() != below_root(root, *told_file))) k3s.is_whole = false;
  for (const auto& file : files)
    if (const auto read = read_configuration(file, k3s, data); !read) return std::unexpected(read.error());
  const auto told = values_of(command->arguments, {"--kubelet-arg"});
  k3s.arguments.insert(k3s.arguments.end(), told.begin(), told.end());
  for (auto& argument : k3s.arguments) argument.insert(0, "--");
  const auto places = values_of(command->arguments, {"--data-dir", "-d"});
  if (!places.empty()) data = places.back();
  k3s.drop_ins = below_root(root, data.value_or(std::string(usual_data))) / "agent/etc/kubelet.conf.d";
  return k3s;
}

}  // namespace evictd::kubelet
