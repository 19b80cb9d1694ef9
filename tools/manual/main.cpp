// Prints a manual page: from a template in roff (PAGE.SECTION.in), or from a Markdown page (NAME.md, as evictd-NAME).
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "config/yaml.hpp"
#include "core/error.hpp"
#include "manual/markdown.hpp"
#include "manual/pages.hpp"

namespace {

evictd::Result<std::string> page_from(const std::filesystem::path& file) {
  const auto source = evictd::config::read_text_file(file);
  if (!source) return std::unexpected(source.error());
  if (file.extension() != ".md") return evictd::manual::page(*source, EVICTD_VERSION);
  auto page = evictd::manual::page_from_markdown(*source, "evictd-" + file.stem().native(), EVICTD_VERSION);
  if (!page) return evictd::fail(page.error(), file.native());
  return page;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: manual-page PAGE.SECTION.in | manual-page NAME.md\n");
    return 2;
  }
  const auto page = page_from(argv[1]);
  if (!page) {
    fmt::print(stderr, "manual-page: {}\n", page.error().message);
    return 1;
  }
  fmt::print("{}", *page);
  return 0;
}
