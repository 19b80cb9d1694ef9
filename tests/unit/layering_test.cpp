#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fixture/places.hpp"

// Which folder of src/ may include which other one. The table is exact: an include that it does not have fails, and so
// does an edge that no file needs any more. core and admission include nothing else but the standard library.

namespace evictd::layering_test {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string_view folder;    ///< "main": the files right under src/
  std::string_view includes;  ///< folders of rows below this one, so that there is no circle, in their order
};

constexpr std::array table{
    Row{"main", "commands async"},
    Row{"commands", "app simulate config os core"},
    Row{"app",
        "agent proxy web metrics devices prekill api state events evict wake node pods cri kubelet kube host async "
        "config os admission core"},
    Row{"simulate", "pods config admission core"},
    Row{"agent", "devices api state events evict wake node pods cri kube host async config os admission core"},
    Row{"proxy", "os core"},
    Row{"web", "events async core"},
    Row{"metrics", "core"},
    Row{"devices", "rpc async os admission core"},
    Row{"prekill", "evict async os core"},
    Row{"api", "events pods rpc async os core"},
    Row{"state", "events evict pods os core"},
    Row{"events", "os core"},
    Row{"evict", "node pods cri kube async os core"},
    Row{"wake", "node async os core"},
    Row{"node", "async config os admission core"},
    Row{"pods", "cri kube async config os core"},
    Row{"cri", "rpc async core"},
    Row{"rpc", "async os core"},
    Row{"kubelet", "config os core"},
    Row{"kube", "async config os core"},
    Row{"host", "async config os core"},
    Row{"async", "core"},
    Row{"config", "admission core"},
    Row{"os", "core"},
    Row{"admission", "core"},
    Row{"core", ""},
};

std::string edge_name(std::string_view folder, std::string_view target) {
  return std::string(folder).append(" → ").append(target);
}

bool has_folder(std::span<const Row> rows, std::string_view folder) {
  return std::ranges::find(rows, folder, &Row::folder) != rows.end();
}

std::vector<std::string_view> targets(const Row& row) {
  std::vector<std::string_view> found;
  for (const auto word : std::views::split(row.includes, ' '))
    if (!word.empty()) found.emplace_back(word.begin(), word.end());
  return found;
}

bool allows(std::span<const Row> rows, std::string_view folder, std::string_view target) {
  const auto row = std::ranges::find(rows, folder, &Row::folder);
  if (row == rows.end()) return false;
  const auto known = targets(*row);
  return std::ranges::find(known, target) != known.end();
}

/// What is wrong with a table itself; empty where nothing is.
std::vector<std::string> objections(std::span<const Row> rows) {
  std::vector<std::string> found;
  for (; !rows.empty(); rows = rows.subspan(1)) {
    auto rest = rows.subspan(1);
    for (const auto target : targets(rows.front())) {
      const auto row = std::ranges::find(rest, target, &Row::folder);
      if (row == rest.end())
        found.push_back(edge_name(rows.front().folder, target) +
                        " does not point to a row further down, in their order");
      else
        rest = rest.subspan(static_cast<std::size_t>(row - rest.begin()) + 1);
    }
  }
  return found;
}

bool is_pure(std::string_view folder) { return folder == "core" || folder == "admission"; }

struct Include {
  std::string name;
  bool is_quoted = false;
};

std::optional<Include> parse_include(std::string_view line) {
  const auto skip_blanks = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  const auto skip = [&](std::string_view word) {
    skip_blanks();
    const bool found = line.starts_with(word);
    if (found) line.remove_prefix(word.size());
    return found;
  };
  if (!skip("#") || !skip("include")) return std::nullopt;
  skip_blanks();
  const bool is_quoted = line.starts_with('"');
  if (!is_quoted && !line.starts_with('<')) return std::nullopt;
  return Include{.name = std::string(line.substr(1, line.find(is_quoted ? '"' : '>', 1) - 1)), .is_quoted = is_quoted};
}

/// The folder that the include leads to, where that is one of src/.
std::optional<std::string> target_of(const Include& include) {
  const auto slash = include.name.find('/');
  if (!include.is_quoted || slash == std::string::npos) return std::nullopt;
  return include.name.substr(0, slash);
}

/// What is wrong with a file of the folder including this; empty where nothing is.
std::string objection(std::span<const Row> rows, std::string_view folder, const Include& include) {
  if (!include.is_quoted) {
    // Headers of the standard library have neither a directory nor an extension.
    const bool is_standard = include.name.find_first_of("/.") == std::string::npos;
    return is_pure(folder) && !is_standard ? "is not of the standard library" : "";
  }
  const auto target = target_of(include);
  if (!target) {
    const bool is_generated = include.name.ends_with(".pb.h");
    return is_generated && !is_pure(folder) ? "" : "is not named from src/ on";
  }
  if (!has_folder(rows, *target)) return "lies in no folder of src/";
  return *target == folder || allows(rows, folder, *target) ? "" : "needs the edge " + edge_name(folder, *target);
}

/// How many includes there are of each folder by each, themselves left out.
using Edges = std::map<std::string, std::map<std::string, int, std::less<>>, std::less<>>;

/// Adds the file's includes to `edges`; the result is what is wrong with them.
std::vector<std::string> read_includes(const fs::path& file, const std::string& folder, Edges& edges) {
  std::vector<std::string> found;
  std::ifstream in(file);
  REQUIRE(in.is_open());
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto include = parse_include(line);
    if (!include) continue;
    if (const auto target = target_of(*include); target && *target != folder) ++edges[folder][*target];
    if (const auto wrong = objection(table, folder, *include); !wrong.empty())
      found.push_back(file.string() + ":" + std::to_string(number) + ": " + include->name + " " + wrong);
  }
  return found;
}

/// "agent → core (149), host (25)", a line for each folder, and how many edges that are.
std::string to_text(const Edges& edges) {
  std::string text;
  std::size_t count = 0;
  for (const auto& row : table) {
    const auto of_folder = edges.find(row.folder);
    if (of_folder == edges.end()) continue;
    auto separator = " → ";
    text.append(row.folder);
    for (const auto target : targets(row)) {
      const auto edge = of_folder->second.find(target);
      if (edge == of_folder->second.end()) continue;
      text.append(separator).append(target).append(" (").append(std::to_string(edge->second)).append(")");
      separator = ", ";
      ++count;
    }
    text += '\n';
  }
  return text + std::to_string(count) + " edges";
}

std::string read(const fs::path& file) {
  std::ifstream in(file);
  REQUIRE(in.is_open());
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_source(const fs::path& path) { return path.extension() == ".cpp" || path.extension() == ".hpp"; }

}  // namespace

TEST_CASE("an include needs an edge of the table, and out of the pure folders only the standard library is there") {
  constexpr std::array rows{Row{"main", "agent"}, Row{"agent", "evict core"}, Row{"evict", ""},
                            Row{"admission", "core"}, Row{"core", ""}};
  const auto quoted = [&](std::string_view folder, const char* name) { return objection(rows, folder, {name, true}); };
  const auto angled = [&](std::string_view folder, const char* name) { return objection(rows, folder, {name, false}); };
  CHECK(quoted("agent", "core/pod.hpp").empty());
  CHECK(quoted("agent", "agent/agent.hpp").empty());
  CHECK(quoted("main", "agent/agent.hpp").empty());
  CHECK(quoted("admission", "core/pod.hpp").empty());
  CHECK(quoted("main", "core/pod.hpp") == "needs the edge main → core");
  CHECK(quoted("core", "admission/chain.hpp") == "needs the edge core → admission");
  CHECK(quoted("evict", "core/pod.hpp") == "needs the edge evict → core");
  CHECK(quoted("evict", "../core/pod.hpp") == "lies in no folder of src/");
  CHECK(quoted("evict", "kill.hpp") == "is not named from src/ on");
  CHECK(quoted("evict", "evictd.pb.h").empty());
  CHECK(quoted("core", "evictd.pb.h") == "is not named from src/ on");
  CHECK(angled("core", "vector").empty());
  CHECK(angled("core", "fmt/format.h") == "is not of the standard library");
  CHECK(angled("admission", "unistd.h") == "is not of the standard library");
  CHECK(angled("evict", "fmt/format.h").empty());
}

TEST_CASE("a table has no circle, no folder that is not there, and one order") {
  const auto objections_to = [](std::initializer_list<Row> rows) { return objections({rows.begin(), rows.size()}); };
  CHECK(objections_to({{"a", "b c"}, {"b", "c"}, {"c", ""}}).empty());
  CHECK(objections_to({{"a", "b"}, {"b", "a"}}).size() == 1);
  CHECK(objections_to({{"a", "a"}}).size() == 1);
  CHECK(objections_to({{"a", "d"}}).size() == 1);
  CHECK(objections_to({{"a", "c b"}, {"b", ""}, {"c", ""}}).size() == 1);
  CHECK(objections_to({{"a", "b b"}, {"b", ""}}).size() == 1);
  CHECK(objections(table) == std::vector<std::string>{});
}

TEST_CASE("includes are found however they are written") {
  CHECK(parse_include("#include <vector>")->name == "vector");
  CHECK_FALSE(parse_include("#include <vector>")->is_quoted);
  CHECK(parse_include("  #  include \"core/pod.hpp\"  // why")->name == "core/pod.hpp");
  CHECK(parse_include("#include\"core/pod.hpp\"")->is_quoted);
  for (const auto* line :
       {"", "#", "// #include <vector>", "#define X \"include\"", "include <vector>", "#include MACRO"})
    CHECK_FALSE(parse_include(line).has_value());
}

TEST_CASE("the order that CONTRIBUTING.md shows is the table's, and its folders are there") {
  std::string order;
  for (const auto& row : table) {
    if (row.folder != "main") CHECK(fs::is_directory(fs::path(fixture::source_root) / "src" / row.folder));
    order.append(order.empty() ? "" : " → ").append(row.folder);
  }
  CHECK(read(fs::path(fixture::source_root) / "CONTRIBUTING.md").find("`" + order + "`") != std::string::npos);
}

TEST_CASE("no coroutine is started so that what it throws is lost: async::spawn starts those that run by themselves") {
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(fixture::source_root) / "src")) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    CAPTURE(entry.path().string());
    CHECK(read(entry.path()).find("asio::detached") == std::string::npos);
  }
}

TEST_CASE("the table has the edges that the sources need, and no other") {
  const fs::path root = fs::path(fixture::source_root) / "src";
  std::size_t files = 0;
  Edges edges;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    const auto relative = entry.path().lexically_relative(root);
    const auto folder = relative.has_parent_path() ? relative.begin()->string() : std::string("main");
    if (folder == "pch") continue;  // a way to build faster, not a dependency
    CAPTURE(relative.string());
    REQUIRE_MESSAGE(has_folder(table, folder), "a new folder needs a row in the table");
    for (const auto& wrong : read_includes(entry.path(), folder, edges)) FAIL_CHECK(wrong);
    ++files;
  }
  CHECK(files > 100);
  for (const auto& row : table)
    for (const auto target : targets(row))
      if (!edges[std::string(row.folder)].contains(target))
        FAIL_CHECK("no file needs the edge " << edge_name(row.folder, target) << " any more: take it out of the table");
  MESSAGE("how many includes lead where:\n" << to_text(edges));
}

}  // namespace evictd::layering_test
