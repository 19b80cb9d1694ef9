#include "host/node_name.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace evictd::host {

std::string node_name(const std::string& configured) {
  if (!configured.empty()) return configured;
  if (const auto* name = std::getenv("NODE_NAME"); name != nullptr && *name != '\0') return name;
  std::array<char, 256> buffer{};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0) return {};
  std::string name = buffer.data();
  std::erase_if(name, [](unsigned char c) { return std::isspace(c) != 0; });
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace evictd::host
