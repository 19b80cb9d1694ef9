#include "kubelet/configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <system_error>
#include <utility>

#include "config/json.hpp"
#include "config/yaml.hpp"
#include "kubelet/flags.hpp"
#include "kubelet/k3s.hpp"
#include "os/below_root.hpp"

namespace evictd::kubelet {
namespace {

namespace fs = std::filesystem;
using config::KubeletLayers;
using config::Layer;
using os::below_root;

constexpr std::array rancher_drop_ins{"/var/lib/rancher/k3s/agent/etc/kubelet.conf.d",
                                      "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d"};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// A pipe would be waited for without an end.
Result<std::string> read(const fs::path& file) {
  std::error_code error;
  if (is_there(file) && !fs::is_regular_file(file, error)) return fail(file.native() + ": is no regular file");
  return config::read_text_file(file);
}

/// All "*.conf" of the directory and those below it, in the order of their paths (kubelet: mergeKubeletConfigurations).
/// None where it is a symbolic link, which filepath.WalkDir does not follow; it does where a slash stands at the end.
Result<std::vector<fs::path>> drop_ins_in(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::is_symlink(directory, error)) return files;
  for (fs::recursive_directory_iterator entry{directory, error}; !error && entry != fs::recursive_directory_iterator{};
       entry.increment(error)) {
    std::error_code gone;
    if (entry->path().extension() == ".conf" && entry->is_regular_file(gone)) files.push_back(entry->path());
  }
  if (error) return fail(fmt::format("{}: cannot be read: {}", directory.native(), error.message()));
  std::ranges::sort(files);
  return files;
}

/// Documents one above the other, and the names of those that were read.
class Stack {
 public:
  Result<void> add_file(const fs::path& file, Layer layer) {
    const auto text = read(file);
    if (!text) return std::unexpected(text.error());
    const auto document = config::parse_kubelet_document(*text, file.native());
    if (!document) return std::unexpected(document.error());
    result_.documents.push_back(file.native());
    result_.files.push_back(file);
    return *document ? layers_.add(**document, layer) : Result<void>{};
  }

  void without_file() { layers_.without_file(); }

  Result<void> add_drop_ins(const fs::path& directory) {
    result_.directories.push_back(directory);
    const auto files = drop_ins_in(directory);
    if (!files) return std::unexpected(files.error());
    for (const auto& file : *files)
      if (auto added = add_file(file, Layer::Merge); !added) return added;
    return {};
  }

  Result<void> add_flags(const Flags& flags, const std::string& of) {
    if (!flags.fields) return {};
    result_.documents.push_back("the flags of " + of);
    constexpr auto no_limit = std::numeric_limits<std::size_t>::max();  // no pod writes them
    return layers_.add(config::Value(flags.fields, result_.documents.back(), no_limit), Layer::Override);
  }

  Result<void> add_answer(const config::Value& fields, std::string_view origin) {
    result_.documents.emplace_back(origin);
    return layers_.add(fields, Layer::Override);
  }

  /// Of one that is told nothing: for people, who would take no document for its defaults.
  void note_bare(const std::string& name) {
    if (result_.documents.empty() && result_.directories.empty())
      result_.documents.push_back(name + ", which has no --config, and so no default thresholds");
  }

  /// By which files flags are what they are.
  void watch(const std::vector<fs::path>& files) {
    result_.files.insert(result_.files.end(), files.begin(), files.end());
  }

  [[nodiscard]] Result<Configuration> finish() {
    auto values = layers_.finish();
    if (!values) return std::unexpected(values.error());
    result_.values = *std::move(values);
    result_.origins = layers_.origins();
    return std::move(result_);
  }

 private:
  KubeletLayers layers_;
  Configuration result_;
};

Loaded not_found(std::string why) { return std::unexpected(NotFound{std::move(why)}); }

std::string name_of(const Process& process) { return fmt::format("{} (pid {})", process.program, process.pid); }

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

/// Without the command line the flags are not known, and they win over the files.
Result<Loaded> load_k3s(const Process& process, const fs::path& root) {
  const auto name = name_of(process);
  const auto k3s = find_k3s(process, root);
  if (!k3s) return std::unexpected(k3s.error());
  if (!is_there(k3s->drop_ins))
    return not_found(fmt::format("{} runs a kubelet, and {} is not there", name, k3s->drop_ins.native()));
  if (!k3s->is_whole)
    return not_found(
        fmt::format("{} hides its command line, and no service of systemd says what it was started with", name));
  Stack stack;
  stack.without_file();
  stack.watch(k3s->files);
  if (const auto added = stack.add_drop_ins(k3s->drop_ins); !added) return std::unexpected(added.error());
  if (const auto added = stack.add_flags(parse_flags(k3s->arguments), name); !added)
    return std::unexpected(added.error());
  auto configuration = stack.finish();
  if (!configuration) return std::unexpected(configuration.error());
  return Loaded{*std::move(configuration)};
}

/// What a flag says of a place, as a path of this machine; absent where it cannot be told or nothing is there.
std::optional<fs::path> place(const std::optional<std::string>& told, const fs::path& root) {
  if (!told || !told->starts_with('/')) return std::nullopt;
  auto path = below_root(root, *told);
  return is_there(path) ? std::optional{std::move(path)} : std::nullopt;
}

/// The flags of one that shows them, or says in which file they are.
using FoundFlags = std::expected<Flags, NotFound>;
Result<FoundFlags> find_flags(const Process& process, const fs::path& root, Stack& stack) {
  const auto unknown = [](std::string why) { return FoundFlags{std::unexpected(NotFound{std::move(why)})}; };
  auto flags = parse_flags(process.arguments);
  if (!flags.arguments_file) {
    if (process.program != "kubelite") return FoundFlags{std::move(flags)};
    return unknown(name_of(process) + " does not say where its kubelet's flags are");
  }
  const auto file = place(flags.arguments_file, root);
  if (!file)
    return unknown(fmt::format("{} has its flags in {}, which is not there", name_of(process), *flags.arguments_file));
  const auto text = read(*file);
  if (!text) return std::unexpected(text.error());
  stack.watch({*file});
  return FoundFlags{parse_flags(arguments_in(*text, *flags.arguments_file))};
}

}  // namespace

Result<Loaded> load(const Process& process, const fs::path& root) {
  const auto name = name_of(process);
  if (!process.unusable.empty()) return not_found(name + ' ' + process.unusable);
  if (process.program == "k3s") return load_k3s(process, root);
  Stack stack;
  const auto found = find_flags(process, root, stack);
  if (!found) return std::unexpected(found.error());
  if (!*found) return not_found(found->error().why);
  const auto& flags = **found;
  const auto file = place(flags.config, root);
  if (flags.config && !file)
    return not_found(fmt::format("{} has its configuration in {}, which is not there", name, *flags.config));
  if (!file) stack.without_file();
  if (file)
    if (const auto added = stack.add_file(*file, Layer::Replace); !added) return std::unexpected(added.error());
  const auto drop_ins = place(flags.drop_ins, root);
  if (flags.drop_ins && !drop_ins)
    return not_found(fmt::format("{} has drop-ins in {}, which is not there", name, *flags.drop_ins));
  if (drop_ins)
    if (const auto added = stack.add_drop_ins(*drop_ins); !added) return std::unexpected(added.error());
  if (const auto added = stack.add_flags(flags, name); !added) return std::unexpected(added.error());
  stack.note_bare(name);
  auto configuration = stack.finish();
  if (!configuration) return std::unexpected(configuration.error());
  return Loaded{*std::move(configuration)};
}

Result<Configuration> parse_configz(std::string_view answer, std::string_view origin) {
  const auto document = config::parse_json(answer, origin);
  if (!document) return std::unexpected(document.error());
  const auto entries = document->entries();
  if (!entries) return std::unexpected(entries.error());
  const auto own = std::ranges::find(*entries, "kubeletconfig", &config::Value::Entry::key);
  if (own == entries->end()) return fail(fmt::format("{}: has no kubeletconfig", origin));
  Stack stack;
  stack.without_file();
  if (const auto added = stack.add_answer(own->value, origin); !added) return std::unexpected(added.error());
  return stack.finish();
}

Result<Configuration> load_files(const std::optional<std::string>& file, const std::optional<std::string>& drop_ins) {
  Stack stack;
  if (!file && drop_ins) stack.without_file();
  if (file)
    if (const auto added = stack.add_file(*file, Layer::Replace); !added) return std::unexpected(added.error());
  if (drop_ins)
    if (const auto added = stack.add_drop_ins(*drop_ins); !added) return std::unexpected(added.error());
  return stack.finish();
}

std::optional<std::string> find_rancher_drop_ins(const fs::path& root) {
  for (const auto* directory : rancher_drop_ins)
    if (const auto path = below_root(root, directory); is_there(path)) return path.native();
  return std::nullopt;
}

}  // namespace evictd::kubelet
