#include "os/boot_id.hpp"

#include <fstream>

namespace evictd::os {

std::string read_boot_id(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace evictd::os
