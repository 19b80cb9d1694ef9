#include "os/exit_code.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "os/log.hpp"

namespace evictd::os {
namespace {

int report(std::string text, int exit_code) {
  std::ranges::replace(text, '\n', ' ');
  log(LogLevel::Error, text);
  return exit_code;
}

}  // namespace

int wrong_usage(const Error& error) { return report(error.message, 2); }

int failed(const Error& error) { return report(error.message, 1); }

}  // namespace evictd::os
