#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string_view>

#include "images.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view{argv[1]} == "import-images") {
    node_suite::import_images();
    return 0;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was said is heard, also of a run that is ended
  return doctest::Context{argc, argv}.run();
}
