#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/work_directory.hpp"

namespace integration {

/// The real runc, or crun, behind a script that may be told to let it fail, or hang. It is whatever the shims run:
/// containerd, its shims and its answers stay the real ones.
class FaultyRunc {
 public:
  FaultyRunc() {
    std::filesystem::create_directories(directory_.path());
    testbed::replace_file(program(), fmt::format(R"(#!/bin/sh
case $(cat {0} 2>&-) in
  fail) echo "runc fails on purpose" >&2; exit 1 ;;
  hang) while [ -e {0} ]; do sleep 0.05; done ;;
esac
exec {1} "$@"
)",
                                                 fault().native(), testbed::oci_runtime().native()));
    std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
  }
  ~FaultyRunc() { work(); }
  FaultyRunc(const FaultyRunc&) = delete;
  FaultyRunc& operator=(const FaultyRunc&) = delete;

  [[nodiscard]] std::filesystem::path program() const { return directory_.path() / "runc"; }
  void fail() const { testbed::replace_file(fault(), "fail"); }
  void hang() const { testbed::replace_file(fault(), "hang"); }
  void work() const { std::filesystem::remove(fault()); }

 private:
  [[nodiscard]] std::filesystem::path fault() const { return directory_.path() / "fault"; }

  testbed::WorkDirectory directory_;
};

}  // namespace integration
