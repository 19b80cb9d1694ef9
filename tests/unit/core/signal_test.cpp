#include "core/signal.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace evictd::core::signal_test {

using enum Signal;

TEST_CASE("every signal has the kubelet's name, which is read back") {
  for (const auto& [signal, text] : {std::pair{MemoryAvailable, "memory.available"},
                                     {AllocatableMemoryAvailable, "allocatableMemory.available"},
                                     {NodefsAvailable, "nodefs.available"},
                                     {NodefsInodesFree, "nodefs.inodesFree"},
                                     {ImagefsAvailable, "imagefs.available"},
                                     {ImagefsInodesFree, "imagefs.inodesFree"},
                                     {ContainerfsAvailable, "containerfs.available"},
                                     {ContainerfsInodesFree, "containerfs.inodesFree"},
                                     {PidAvailable, "pid.available"}}) {
    CHECK(name(signal) == text);
    CHECK(parse_signal(text) == signal);
  }
}

TEST_CASE("what is no signal is not taken for one") {
  for (const std::string text :
       {"", "memory", "Memory.available", "memory.available ", "swap.available", "nodefs.free"})
    CHECK_MESSAGE(!parse_signal(text), text);
}

TEST_CASE("a signal stands for the resource that messages name and for the condition of the node") {
  for (const auto signal : {MemoryAvailable, AllocatableMemoryAvailable}) {
    CHECK(resource_of(signal) == "memory");
    CHECK(name(condition_of(signal)) == "MemoryPressure");
    CHECK(is_memory(signal));
    CHECK_FALSE(is_disk(signal));
    CHECK_FALSE(is_counted(signal));
  }
  for (const auto signal : {NodefsAvailable, ImagefsAvailable, ContainerfsAvailable}) {
    CHECK(resource_of(signal) == "ephemeral-storage");
    CHECK(name(condition_of(signal)) == "DiskPressure");
    CHECK(is_disk(signal));
    CHECK_FALSE(is_counted(signal));
  }
  for (const auto signal : {NodefsInodesFree, ImagefsInodesFree, ContainerfsInodesFree}) {
    CHECK(resource_of(signal) == "inodes");
    CHECK(name(condition_of(signal)) == "DiskPressure");
    CHECK(is_disk(signal));
    CHECK(is_counted(signal));
  }
  CHECK(resource_of(PidAvailable) == "pids");
  CHECK(name(condition_of(PidAvailable)) == "PIDPressure");
  CHECK_FALSE(is_memory(PidAvailable));
  CHECK_FALSE(is_disk(PidAvailable));
  CHECK(is_counted(PidAvailable));
}

TEST_CASE("a disk signal is one of the node's, the images' or the containers' file system") {
  for (const auto signal : all_signals()) {
    CHECK(is_nodefs(signal) == name(signal).starts_with("nodefs."));
    CHECK(is_imagefs(signal) == name(signal).starts_with("imagefs."));
  }
}

TEST_CASE("the list of signals is complete, and in the order in which thresholds act") {
  CHECK(all_signals().size() == 9);
  CHECK(std::ranges::is_sorted(all_signals()));
  CHECK(all_signals().front() == MemoryAvailable);
  CHECK(all_signals().back() == PidAvailable);
}

}  // namespace evictd::core::signal_test
