#include "node/allocation_store.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <system_error>

#include "config/yaml.hpp"
#include "node/allocation_file.hpp"
#include "os/atomic_file.hpp"

namespace evictd::node {
namespace {

using Basis = admission::ResourceAllocator::Basis;

/// The first thing that was different when the allocations were made.
Result<void> check_basis(const Basis& kept, const Basis& now) {
  const auto shown = [](const Basis& basis, const std::string& key) {
    const auto found = basis.find(key);
    return found == basis.end() ? std::string("nothing") : "\"" + found->second + "\"";
  };
  auto keys = now;
  keys.insert(kept.begin(), kept.end());
  for (const auto& [key, value] : keys)
    if (shown(kept, key) != shown(now, key))
      return fail(fmt::format("was made for {} {}, which is now {}", key, shown(kept, key), shown(now, key)));
  return {};
}

Error too_large(std::uintmax_t bytes) {
  return {fmt::format("has {} bytes, and at most {} are read", bytes, largest_allocation_file)};
}

}  // namespace

Result<AllocationStore::Loaded> AllocationStore::load(const admission::ResourceAllocator& allocator) const {
  std::error_code error;
  if (path_.empty() || (!std::filesystem::exists(path_, error) && !error)) return Loaded{};
  if (const auto bytes = std::filesystem::file_size(path_, error); !error && bytes > largest_allocation_file)
    return set_aside(too_large(bytes));
  const auto text = config::read_text_file(path_, largest_allocation_file);
  if (!text) return std::unexpected(text.error());
  auto kept = parse_allocations(*text);
  if (!kept) return set_aside(kept.error());
  // With nothing given away nothing can be wrong.
  if (kept->allocations.empty()) return Loaded{.plugin_resources = std::move(kept->plugin_resources)};

  auto right = check_basis(kept->basis, allocator.basis());
  if (right) right = allocator.check(kept->allocations);
  if (!right)
    return fail(fmt::format("{}: {}; drain the node and delete the file", path_.native(), right.error().message));
  Loaded loaded{.allocations = std::move(kept->allocations), .plugin_resources = std::move(kept->plugin_resources)};
  if (!boot_.empty() && kept->boot == boot_) loaded.coming = std::move(kept->coming);
  return loaded;
}

Result<AllocationStore::Loaded> AllocationStore::set_aside(const Error& why) const {
  const auto aside = path_.native() + ".unreadable";
  std::error_code error;
  std::filesystem::rename(path_, aside, error);
  if (error)
    return fail(fmt::format("{}: {}, and it cannot be set aside: {}", path_.native(), why.message, error.message()));
  return Loaded{.set_aside = Error{fmt::format("{}: {}; set aside as {}", path_.native(), why.message, aside)}};
}

Result<void> AllocationStore::save(const admission::Allocations& allocations,
                                   const admission::ResourceAllocator& allocator,
                                   const std::set<std::string>& plugin_resources,
                                   const admission::Coming& coming) const {
  if (path_.empty()) return {};
  const auto text = print_allocations({.basis = allocator.basis(),
                                       .allocations = allocations,
                                       .plugin_resources = plugin_resources,
                                       .coming = coming,
                                       .boot = boot_});
  if (text.size() > largest_allocation_file) return fail(too_large(text.size()), path_.native());
  return os::write_atomically(path_, text);
}

}  // namespace evictd::node
