#include "node/meminfo.hpp"

#include <doctest/doctest.h>

#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::node::meminfo_test {
namespace {

using fixture::error_of;
using fixture::Tree;
using fixture::value_of;

Meminfo open(const std::filesystem::path& proc) { return value_of(Meminfo::open(value_of(os::Directory::open(proc)))); }

}  // namespace

TEST_CASE("the machine's memory is read in bytes, and anew each time") {
  const Tree tree{fixture::proc({.total = 4096 << 10, .free = 1024 << 10, .available = 2048 << 10})};
  const auto meminfo = open(tree.path("proc"));
  CHECK(value_of(meminfo.read()) == MachineMemory{.total = 4096 << 10, .free = 1024 << 10, .available = 2048 << 10});
  tree.write("proc/meminfo", "MemTotal: 8 kB\nMemFree: 1 kB\nMemAvailable: 2 kB\n");
  CHECK(value_of(meminfo.read()) == MachineMemory{.total = 8192, .free = 1024, .available = 2048});
}

TEST_CASE(
    "what memory is used for: anonymous pages, and files with shared memory, blocks and what was swapped back in") {
  const Tree tree{fixture::proc({})};
  const auto meminfo = open(tree.path("proc"));
  tree.write("proc/meminfo",
             "MemTotal: 90 kB\nMemFree: 20 kB\nMemAvailable: 50 kB\nBuffers: 1 kB\nCached: 20 kB\nSwapCached: 4 kB\n"
             "Inactive: 99 kB\nInactive(file): 8 kB\nAnonPages: 16 kB\n");
  CHECK(value_of(meminfo.read_use()) ==
        MachineUse{.not_free = 70 << 10, .anonymous = 16 << 10, .file = 25 << 10, .inactive_file = 8 << 10});
  tree.write("proc/meminfo", "MemTotal: 90 kB\nMemFree: 20 kB\n");
  CHECK(error_of(meminfo.read_use()) == tree.path("proc/meminfo").native() + ": no number behind \"Buffers:\"");
}

TEST_CASE("a line that is missing or no number is named") {
  const Tree tree{fixture::proc({})};
  const auto meminfo = open(tree.path("proc"));
  tree.write("proc/meminfo", "MemTotal: 8 kB\nMemFree: 1 kB\n");
  CHECK(error_of(meminfo.read()) == tree.path("proc/meminfo").native() + ": no number behind \"MemAvailable:\"");
  tree.write("proc/meminfo", "MemTotal: lots kB\nMemFree: 1 kB\nMemAvailable: 2 kB\n");
  CHECK(error_of(meminfo.read()) == tree.path("proc/meminfo").native() + ": no number behind \"MemTotal:\"");
  tree.write("proc/meminfo", "MemTotal: 9223372036854775807 kB\nMemFree: 1 kB\nMemAvailable: 2 kB\n");
  CHECK(error_of(meminfo.read()) == tree.path("proc/meminfo").native() + ": no number behind \"MemTotal:\"");
}

TEST_CASE("the machine this runs on has memory") {
  const auto memory = value_of(open("/proc").read());
  CHECK(memory.total > 0);
  CHECK(memory.free <= memory.total);
  CHECK(memory.available <= memory.total);
  const auto use = value_of(open("/proc").read_use());
  CHECK(use.anonymous > 0);
  CHECK(use.file >= use.inactive_file);
  CHECK(use.anonymous + use.file <= memory.total);
}

}  // namespace evictd::node::meminfo_test
