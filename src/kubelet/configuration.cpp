#include "kubelet/configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <expected>
#include <map>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "config/yaml.hpp"
#include "kubelet/flags.hpp"

namespace evictd::kubelet {
namespace {

namespace fs = std::filesystem;
using config::KubeletLayers;
using config::Layer;

constexpr std::array rancher_drop_ins{"/var/lib/rancher/k3s/agent/etc/kubelet.conf.d",
                                      "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d"};

fs::path below(const fs::path& root, std::string_view absolute) { return root / fs::path(absolute).relative_path(); }

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// All "*.conf" of the directory and those below it, in the order of their paths (kubelet: mergeKubeletConfigurations).
std::vector<fs::path> drop_ins_in(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry{directory, error}; !error && entry != fs::recursive_directory_iterator{};
       entry.increment(error))
    if (entry->path().extension() == ".conf" && entry->is_regular_file(error)) files.push_back(entry->path());
  std::ranges::sort(files);
  return files;
}

/// Documents one above the other, and the names of those that were read.
class Stack {
 public:
  Result<void> add_file(const fs::path& file, Layer layer) {
    const auto text = config::read_text_file(file);
    if (!text) return std::unexpected(text.error());
    const auto document = config::parse_kubelet_document(*text, file.native());
    if (!document) return std::unexpected(document.error());
    documents_.push_back(file.native());
    return *document ? layers_.add(**document, layer) : Result<void>{};
  }

  Result<void> add_drop_ins(const fs::path& directory) {
    for (const auto& file : drop_ins_in(directory))
      if (auto added = add_file(file, Layer::Merge); !added) return added;
    return {};
  }

  Result<void> add_flags(const Flags& flags, const std::string& of) {
    if (!flags.fields) return {};
    documents_.push_back("the flags of " + of);
    return layers_.add(config::Value(flags.fields, documents_.back()), Layer::Replace);
  }

  [[nodiscard]] Result<Configuration> finish() {
    auto values = layers_.finish();
    if (!values) return std::unexpected(values.error());
    return Configuration{
        .values = *std::move(values), .origins = layers_.origins(), .documents = std::move(documents_)};
  }

 private:
  KubeletLayers layers_;
  std::vector<std::string> documents_;
};

Loaded not_found(std::string why) { return std::unexpected(NotFound{std::move(why)}); }

std::string name_of(const Process& process) { return fmt::format("{} (pid {})", process.program, process.pid); }

/// The flags that a process's own command line leads to, with where they are written.
struct Told {
  Flags flags;
  std::string by;
};

/// A file with a flag on each line, as MicroK8s keeps it: /var/snap/microk8s/current/args/kubelet.
std::vector<std::string> arguments_in(const std::string& text, const fs::path& file) {
  const std::array variables{std::pair<std::string, std::string>{"${SNAP_DATA}", file.parent_path().parent_path()},
                             std::pair<std::string, std::string>{"${SNAP_COMMON}", "/var/snap/microk8s/common"}};
  std::vector<std::string> arguments;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    auto line = text.substr(begin, end - begin);
    begin = end + 1;
    for (const auto& [variable, value] : variables)
      if (const auto at = line.find(variable); at != std::string::npos) line.replace(at, variable.size(), value);
    std::erase(line, '"');
    if (line.starts_with("--")) arguments.push_back(std::move(line));
  }
  return arguments;
}

/// What k3s hands to its kubelet: `kubelet-arg` of its own configuration, where the last file that has it wins and
/// "kubelet-arg+" adds.
Result<std::vector<std::string>> k3s_arguments(const fs::path& root) {
  std::vector<fs::path> files{below(root, "/etc/rancher/k3s/config.yaml")};
  std::error_code error;
  for (fs::directory_iterator entry{below(root, "/etc/rancher/k3s/config.yaml.d"), error};
       !error && entry != fs::directory_iterator{}; entry.increment(error))
    if (entry->path().extension() == ".yaml") files.push_back(entry->path());
  std::sort(files.begin() + 1, files.end());
  std::vector<std::string> arguments;
  for (const auto& file : files) {
    if (!is_there(file)) continue;
    const auto text = config::read_text_file(file);
    if (!text) return std::unexpected(text.error());
    const auto document = config::parse_yaml(*text, file.native());
    if (!document) return std::unexpected(document.error());
    if (document->is_null()) continue;
    const auto entries = document->entries();
    if (!entries) return std::unexpected(entries.error());
    for (const auto& [key, value] : *entries) {
      if (key != "kubelet-arg" && key != "kubelet-arg+") continue;
      if (key == "kubelet-arg") arguments.clear();
      const auto items = value.items();
      if (!items) return std::unexpected(items.error());
      for (const auto& item : *items) {
        const auto argument = item.text();
        if (!argument) return std::unexpected(argument.error());
        arguments.push_back("--" + *argument);
      }
    }
  }
  return arguments;
}

/// k3s runs its kubelet within itself, and shows no flags.
Result<Loaded> load_k3s(const Process& process, const fs::path& root) {
  const auto directory = below(root, rancher_drop_ins.front());
  if (!is_there(directory))
    return not_found(fmt::format("{} runs a kubelet, and {} is not there", name_of(process), directory.native()));
  const auto arguments = k3s_arguments(root);
  if (!arguments) return std::unexpected(arguments.error());
  Stack stack;
  if (const auto added = stack.add_drop_ins(directory); !added) return std::unexpected(added.error());
  if (const auto added = stack.add_flags(parse_flags(*arguments), name_of(process)); !added)
    return std::unexpected(added.error());
  auto configuration = stack.finish();
  if (!configuration) return std::unexpected(configuration.error());
  configuration->drop_ins = directory.native();
  return Loaded{*std::move(configuration)};
}

/// What a flag says of a place, as a path of this machine; absent where it cannot be told or nothing is there.
std::optional<fs::path> place(const std::optional<std::string>& told, const fs::path& root) {
  if (!told || !told->starts_with('/')) return std::nullopt;
  auto path = below(root, *told);
  return is_there(path) ? std::optional{std::move(path)} : std::nullopt;
}

}  // namespace

Result<Loaded> load(const Process& process, const fs::path& root) {
  if (process.program == "k3s") return load_k3s(process, root);
  const auto name = name_of(process);
  auto flags = parse_flags(process.arguments);
  if (flags.arguments_file) {
    const auto file = place(flags.arguments_file, root);
    if (!file) return not_found(fmt::format("{} has its flags in {}, which is not there", name, *flags.arguments_file));
    const auto text = config::read_text_file(*file);
    if (!text) return std::unexpected(text.error());
    flags = parse_flags(arguments_in(*text, *flags.arguments_file));
  } else if (process.program == "kubelite") {
    return not_found(fmt::format("{} does not say where its kubelet's flags are", name));
  }
  Stack stack;
  const auto file = place(flags.config, root);
  if (flags.config && !file)
    return not_found(fmt::format("{} has its configuration in {}, which is not there", name, *flags.config));
  if (file)
    if (const auto added = stack.add_file(*file, Layer::Replace); !added) return std::unexpected(added.error());
  const auto drop_ins = place(flags.drop_ins, root);
  if (flags.drop_ins && !drop_ins)
    return not_found(fmt::format("{} has drop-ins in {}, which is not there", name, *flags.drop_ins));
  if (drop_ins)
    if (const auto added = stack.add_drop_ins(*drop_ins); !added) return std::unexpected(added.error());
  if (const auto added = stack.add_flags(flags, name); !added) return std::unexpected(added.error());
  auto configuration = stack.finish();
  if (!configuration) return std::unexpected(configuration.error());
  if (file) configuration->file = file->native();
  if (drop_ins) configuration->drop_ins = drop_ins->native();
  return Loaded{*std::move(configuration)};
}

Result<Configuration> load_files(const std::optional<std::string>& file, const std::optional<std::string>& drop_ins) {
  Stack stack;
  if (file)
    if (const auto added = stack.add_file(*file, Layer::Replace); !added) return std::unexpected(added.error());
  if (drop_ins)
    if (const auto added = stack.add_drop_ins(*drop_ins); !added) return std::unexpected(added.error());
  auto configuration = stack.finish();
  if (!configuration) return configuration;
  configuration->file = file;
  configuration->drop_ins = drop_ins;
  return configuration;
}

std::optional<std::string> find_rancher_drop_ins(const fs::path& root) {
  for (const auto* directory : rancher_drop_ins)
    if (const auto path = below(root, directory); is_there(path)) return path.native();
  return std::nullopt;
}

}  // namespace evictd::kubelet
