// Writes what the documents say of evictd's configuration: manual-page TEMPLATE prints a manual page, manual-page
// --readme README.md brings the README's table up to date.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>

#include "config/yaml.hpp"
#include "core/error.hpp"
#include "manual/pages.hpp"
#include "os/atomic_file.hpp"

namespace {

evictd::Result<void> print_page(const char* file) {
  const auto page_template = evictd::config::read_text_file(file);
  if (!page_template) return std::unexpected(page_template.error());
  fmt::print("{}", evictd::manual::page(*page_template, EVICTD_VERSION));
  return {};
}

evictd::Result<void> update_readme(const char* file) {
  const auto readme = evictd::config::read_text_file(file);
  if (!readme) return std::unexpected(readme.error());
  const auto updated = evictd::manual::readme_with_table(*readme);
  if (!updated) return evictd::fail(updated.error(), file);
  return *updated == *readme ? evictd::Result<void>{} : evictd::os::write_atomically(file, *updated, {.mode = 0644});
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments{argv, static_cast<std::size_t>(argc)};
  const bool is_readme = arguments.size() == 3 && std::string_view(arguments[1]) == "--readme";
  if (!is_readme && arguments.size() != 2) {
    fmt::print(stderr, "usage: manual-page TEMPLATE | manual-page --readme README.md\n");
    return 2;
  }
  const auto done = is_readme ? update_readme(arguments[2]) : print_page(arguments[1]);
  if (done) return 0;
  fmt::print(stderr, "manual-page: {}\n", done.error().message);
  return 1;
}
