#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>

#include "node/allocation_file.hpp"
#include "target.hpp"

// The file of what pods were given: as it stands, and with a checksum that fits, which no mutation would find.

namespace evictd::fuzz {
namespace {

void check_file(std::string_view text) {
  const auto kept = node::parse_allocations(text);
  if (!is_good(kept)) return;
  const auto printed = node::print_allocations(*kept);
  check(value_of(node::parse_allocations(printed)) == *kept, "printed and read again it is the same");
}

/// FNV-1a, as in the file.
std::uint64_t checksum(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace

void run(std::string_view input) {
  check_file(input);
  boost::system::error_code error;
  const auto content = boost::json::parse(input, error);
  if (error) return;
  const auto text = boost::json::serialize(content);
  check_file(fmt::format(R"({{"kind":"evictd.io/allocations","version":1,"checksum":"{:016x}","content":{}}})",
                         checksum(text), text));
}

}  // namespace evictd::fuzz
