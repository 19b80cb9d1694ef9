#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fixture/places.hpp"

// Dependencies point one way: a folder of src/ includes itself and those after it in this list. core and admission
// include nothing else but the standard library.

namespace evictd {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 17> folders{"commands", "agent", "proxy",  "web",       "metrics", "api",
                                                   "evict",    "wake",  "node",   "pods",      "cri",     "kube",
                                                   "host",     "async", "config", "admission", "core"};

/// How far inside a folder lies; the program itself, right under src/, is outermost.
std::optional<std::ptrdiff_t> depth(std::string_view folder) {
  if (folder.empty()) return -1;
  const auto found = std::ranges::find(folders, folder);
  if (found == folders.end()) return std::nullopt;
  return found - folders.begin();
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

/// What is wrong with a file of the folder including this; empty where nothing is.
std::string objection(std::string_view folder, const Include& include) {
  if (!include.is_quoted) {
    // Headers of the standard library have neither a directory nor an extension.
    const bool is_standard = include.name.find_first_of("/.") == std::string::npos;
    return is_pure(folder) && !is_standard ? "is not of the standard library" : "";
  }
  const auto slash = include.name.find('/');
  if (slash == std::string::npos) {
    const bool is_generated = include.name.ends_with(".pb.h");
    return is_generated && !is_pure(folder) ? "" : "is not named from src/ on";
  }
  const auto target = depth(include.name.substr(0, slash));
  if (!target) return "lies in no folder of src/";
  return *target < *depth(folder) ? "points outwards" : "";
}

std::vector<std::string> violations(const fs::path& file, std::string_view folder) {
  std::vector<std::string> found;
  std::ifstream in(file);
  REQUIRE(in.is_open());
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto include = parse_include(line);
    if (!include) continue;
    if (const auto wrong = objection(folder, *include); !wrong.empty())
      found.push_back(file.string() + ":" + std::to_string(number) + ": " + include->name + " " + wrong);
  }
  return found;
}

std::string read(const fs::path& file) {
  std::ifstream in(file);
  REQUIRE(in.is_open());
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_source(const fs::path& path) { return path.extension() == ".cpp" || path.extension() == ".hpp"; }

}  // namespace

TEST_CASE("an include may point inwards, not outwards, and out of the pure folders to the standard library alone") {
  const auto quoted = [](std::string_view folder, const char* name) { return objection(folder, {name, true}); };
  const auto angled = [](std::string_view folder, const char* name) { return objection(folder, {name, false}); };
  CHECK(quoted("agent", "core/pod.hpp").empty());
  CHECK(quoted("agent", "agent/agent.hpp").empty());
  CHECK(quoted("", "commands/run.hpp").empty());
  CHECK(quoted("admission", "core/pod.hpp").empty());
  CHECK(quoted("core", "admission/chain.hpp") == "points outwards");
  CHECK(quoted("evict", "agent/agent.hpp") == "points outwards");
  CHECK(quoted("evict", "../core/pod.hpp") == "lies in no folder of src/");
  CHECK(quoted("evict", "kill.hpp") == "is not named from src/ on");
  CHECK(quoted("api", "evictd.pb.h").empty());
  CHECK(quoted("core", "evictd.pb.h") == "is not named from src/ on");
  CHECK(angled("core", "vector").empty());
  CHECK(angled("core", "fmt/format.h") == "is not of the standard library");
  CHECK(angled("admission", "unistd.h") == "is not of the standard library");
  CHECK(angled("node", "fmt/format.h").empty());
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

TEST_CASE("the order that the documents show is this one, and its folders are there") {
  std::string order = "main";
  for (const auto folder : folders) {
    CHECK(fs::is_directory(fs::path(fixture::source_root) / "src" / folder));
    order.append(" → ").append(folder);
  }
  for (const auto* document : {"CONTRIBUTING.md"}) {
    CAPTURE(document);
    CHECK(read(fs::path(fixture::source_root) / document).find("`" + order + "`") != std::string::npos);
  }
}

TEST_CASE("no coroutine is started so that what it throws is lost: async::spawn starts those that run by themselves") {
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(fixture::source_root) / "src")) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    CAPTURE(entry.path().string());
    CHECK(read(entry.path()).find("asio::detached") == std::string::npos);
  }
}

TEST_CASE("every include in the sources points inwards") {
  const fs::path root = fs::path(fixture::source_root) / "src";
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    const auto relative = entry.path().lexically_relative(root);
    const auto folder = relative.has_parent_path() ? relative.begin()->string() : std::string();
    if (folder == "pch") continue;  // a way to build faster, not a dependency
    CAPTURE(relative.string());
    REQUIRE_MESSAGE(depth(folder).has_value(), "a new folder needs its place in the order");
    for (const auto& violation : violations(entry.path(), folder)) FAIL_CHECK(violation);
    ++files;
  }
  CHECK(files > 100);
}

}  // namespace evictd
