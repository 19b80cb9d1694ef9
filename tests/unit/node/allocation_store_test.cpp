#include "node/allocation_store.hpp"

#include <doctest/doctest.h>

#include <chrono>

#include "config/yaml.hpp"
#include "fixture/machines.hpp"
#include "fixture/tree.hpp"
#include "node/allocation_file.hpp"

namespace evictd::node::allocation_store_test {
namespace {

using namespace fixture;
using admission::ResourceAllocator;

ResourceAllocator allocator(const admission::AllocationSettings& settings = all_static("restricted")) {
  return value_of(ResourceAllocator::make(settings));
}

const core::Pod asking = pod("uid-1", {guaranteed("main", "4", "2Gi")});

/// With what the pod above was given in it.
admission::Allocations filled(const AllocationStore& store) {
  const admission::Allocations allocations{{asking.uid, allocator().allocate(asking, {}).value()}};
  REQUIRE(store.save(allocations, allocator()).has_value());
  return allocations;
}

}  // namespace

TEST_CASE("what pods were given outlives evictd, and they are given the same again") {
  const Tree tree;
  const AllocationStore store{tree.path("lib/allocations.json")};
  CHECK(value_of(store.load(allocator())).allocations.empty());
  const auto allocations = filled(store);
  const auto loaded = value_of(store.load(allocator()));
  CHECK(loaded.allocations == allocations);
  CHECK_FALSE(loaded.set_aside.has_value());
  CHECK(allocator().allocate(asking, loaded.allocations) == allocations.at(asking.uid));
  const auto other = allocator().allocate(pod("uid-2", {guaranteed("main", "2", "1Gi")}), loaded.allocations).value();
  CHECK(other.at("main").cpus == admission::CpuSet{3, 11});

  REQUIRE(store.save({}, allocator()).has_value());
  CHECK(value_of(store.load(allocator())).allocations.empty());
}

TEST_CASE("pods that have yet to come are those of this boot") {
  const Tree tree;
  const auto path = tree.path("allocations.json");
  const AllocationStore store{path, "this boot"};
  const admission::Coming coming{{asking.uid, core::Instant{std::chrono::minutes(7)}}};
  REQUIRE(store.save(filled(store), allocator(), {}, coming).has_value());
  CHECK(value_of(store.load(allocator())).coming == coming);
  const auto later = value_of(AllocationStore{path, "the next boot"}.load(allocator()));
  CHECK(later.coming.empty());
  CHECK(later.allocations.contains(asking.uid));
  const AllocationStore unknown{path, ""};
  REQUIRE(unknown.save(later.allocations, allocator(), {}, coming).has_value());
  CHECK(value_of(unknown.load(allocator())).coming.empty());
}

TEST_CASE("what device plugins served outlives evictd, also where no pod has any of it and policies have changed") {
  const Tree tree;
  const AllocationStore store{tree.path("allocations.json")};
  filled(store);
  CHECK(value_of(store.load(allocator())).plugin_resources.empty());
  const std::set<std::string> served{"example.com/gpu", "example.com/nic"};
  const auto allocations = value_of(store.load(allocator())).allocations;
  REQUIRE(store.save(allocations, allocator(), served).has_value());
  CHECK(value_of(store.load(allocator())).plugin_resources == served);
  CHECK(value_of(store.load(allocator())).allocations == allocations);
  REQUIRE(store.save({}, allocator(), served).has_value());
  auto changed = all_static("restricted");
  changed.cpu_policy = "none";
  CHECK(value_of(store.load(allocator(changed))).plugin_resources == served);
}

TEST_CASE("without a path nothing is kept") {
  const AllocationStore store{""};
  CHECK(store.save({{"a", {}}}, allocator()).has_value());
  CHECK(value_of(store.load(allocator())).allocations.empty());
}

TEST_CASE("allocations that rest on another policy or machine are an error that says what to do") {
  const Tree tree;
  const AllocationStore store{tree.path("allocations.json")};
  filled(store);
  const auto error = [&](const admission::AllocationSettings& settings) {
    return error_of(store.load(allocator(settings)));
  };
  const auto sentence = [&](const std::string& what) {
    return store.path().native() + ": " + what + "; drain the node and delete the file";
  };
  auto changed = all_static("restricted");
  changed.cpu_policy = "none";
  CHECK(error(changed) == sentence("was made for cpuManagerPolicy \"static\", which is now \"none\""));
  changed = all_static("restricted");
  changed.memory_policy = "None";
  CHECK(error(changed) == sentence("was made for memoryManagerPolicy \"Static\", which is now \"None\""));
  changed = all_static("restricted");
  changed.reserved["cpu"] = quantity("4");
  CHECK(error(changed) == sentence("was made for reservedCpus \"0,8\", which is now \"0-1,8-9\""));
  changed = all_static("restricted");
  changed.topology.cpus.pop_back();
  CHECK(error(changed) == sentence("was made for onlineCpus \"0-15\", which is now \"0-14\""));
  changed = all_static("restricted");
  changed.topology.numa_nodes[1].memory["hugepages-2Mi"] = 0;
  CHECK(error(changed) ==
        sentence("was made for numaNode1.hugepages-2Mi nothing, which is now \"0 bytes, 0 of them reserved\""));
  // The topology policy may change: it says where to allocate, not what was.
  CHECK(error(all_static("none")) == "no error");

  // It is left alone, and right again with the old configuration.
  CHECK(value_of(store.load(allocator())).allocations.size() == 1);
}

TEST_CASE("with nothing given away a changed policy is no fault") {
  const Tree tree;
  const AllocationStore store{tree.path("allocations.json")};
  REQUIRE(store.save({}, allocator()).has_value());
  auto changed = all_static("restricted");
  changed.cpu_policy = "none";
  CHECK(value_of(store.load(allocator(changed))).allocations.empty());
}

TEST_CASE("allocations that cannot be true are an error") {
  const Tree tree;
  const AllocationStore store{tree.path("allocations.json")};
  REQUIRE(store.save({{"a", {{"main", {.cpus = {1}}}}}, {"b", {{"main", {.cpus = {1}}}}}}, allocator()).has_value());
  CHECK(error_of(store.load(allocator())) ==
        store.path().native() + ": CPU 1 of pod b belongs to pod a; drain the node and delete the file");
}

TEST_CASE("a file that cannot be understood is set aside and told") {
  for (const auto& [text, why] :
       {std::pair{"", "is not JSON: incomplete JSON"},
        {"{\"policyName\":\"static\"}", "is no file of kind evictd.io/allocations"},
        {"{\"kind\":\"evictd.io/allocations\",\"version\":2}", "has version 2, this evictd reads 1"},
        {"{\"kind\":\"evictd.io/allocations\",\"version\":1,\"content\":{},\"checksum\":\"0\"}",
         "is damaged: its checksum is wrong"}}) {
    CAPTURE(why);
    const Tree tree{file("allocations.json", text)};
    const AllocationStore store{tree.path("allocations.json")};
    const auto loaded = value_of(store.load(allocator()));
    CHECK(loaded.allocations.empty());
    const auto path = store.path().native();
    CHECK(loaded.set_aside.value_or(Error{}).message == path + ": " + why + "; set aside as " + path + ".unreadable");
    CHECK(value_of(config::read_text_file(path + ".unreadable")) == text);
    CHECK_FALSE(std::filesystem::exists(path));
    CHECK_FALSE(value_of(store.load(allocator())).set_aside.has_value());
  }
}

TEST_CASE("what plugins say of many containers is read again, however much a configuration may be") {
  const Tree tree;
  const AllocationStore store{tree.path("allocations.json")};
  admission::Allocations allocations;
  for (const std::string name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) {
    auto& given = allocations[name]["main"];
    given.devices["example.com/gpu"] = {name};
    given.edits = admission::DeviceEdits{.environment = {{"DEVICES", std::string(128 << 10, '\x01')}}};
  }
  REQUIRE(store.save(allocations, allocator()).has_value());
  REQUIRE(std::filesystem::file_size(store.path()) > config::max_file_size);
  const auto loaded = value_of(store.load(allocator()));
  CHECK_FALSE(loaded.set_aside.has_value());
  CHECK(loaded.allocations == allocations);
}

TEST_CASE("a file that is larger than any that is written is set aside and told, and none such is written") {
  const Tree tree{file("allocations.json", "")};
  const AllocationStore store{tree.path("allocations.json")};
  std::filesystem::resize_file(store.path(), largest_allocation_file + 1);  // takes no room on the disk
  const auto loaded = value_of(store.load(allocator()));
  const auto path = store.path().native();
  CHECK(loaded.set_aside.value_or(Error{}).message ==
        path + ": has 67108865 bytes, and at most 67108864 are read; set aside as " + path + ".unreadable");
  CHECK_FALSE(std::filesystem::exists(path));

  const auto allocations = filled(store);
  const admission::DeviceEdits huge{.environment = {{"A", std::string(largest_allocation_file, 'x')}}};
  CHECK(error_of(store.save({{"a", {{"main", {.edits = huge}}}}}, allocator())).starts_with(path + ": has 67"));
  CHECK(value_of(store.load(allocator())).allocations == allocations);
}

TEST_CASE("a file that cannot be read is an error, and stays where it is") {
  const Tree tree{dir("allocations.json")};
  const AllocationStore store{tree.path("allocations.json")};
  CHECK(error_of(store.load(allocator())) == store.path().native() + ": cannot be read: Is a directory");
  CHECK(std::filesystem::exists(store.path()));
}

}  // namespace evictd::node::allocation_store_test
