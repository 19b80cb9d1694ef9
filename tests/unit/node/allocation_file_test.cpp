#include "node/allocation_file.hpp"

#include <doctest/doctest.h>

#include <chrono>

#include "fixture/random.hpp"
#include "fixture/result.hpp"

namespace evictd::node::allocation_file_test {
namespace {

using fixture::error_of;
using fixture::Random;
using fixture::seeds;
using fixture::value_of;

KeptAllocations some() {
  return {
      .basis = {{"cpuManagerPolicy", "static"}},
      .allocations = {{"uid-1",
                       {{"main",
                         {.cpus = {1, 2, 5},
                          .memory = {{.numa_nodes = {0, 1}, .type = "memory", .bytes = 1 << 30}},
                          .devices = {{"example.com/gpu", {"0", "GPU-\"1\""}}},
                          .edits =
                              admission::DeviceEdits{
                                  .environment = {{"GPU", "0,1"}},
                                  .mounts = {{.container_path = "/lib", .host_path = "/opt", .read_only = true}},
                                  .devices = {{.container_path = "/dev/a", .host_path = "/dev/b", .permissions = "rw"}},
                                  .annotations = {{"a", "b"}},
                                  .cdi_devices = {"v/c=0"}}}},
                        {"asked for nothing more", {.edits = admission::DeviceEdits{}}},
                        {"init", {}}}}},
      .plugin_resources = {"example.com/gpu", "example.com/nic"},
      .coming = {{"uid-1", core::Instant{std::chrono::seconds(90)}}},
      .boot = "b1"};
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

std::string any_text(Random& random) {
  std::string text;
  for (auto left = random.between(1, 8); left > 0; --left) text += random.pick({'a', '"', '\\', '\n', '/', '{', ' '});
  return text;
}

std::set<int> any_numbers(Random& random) {
  std::set<int> result;
  for (auto left = random.between(0, 5); left > 0; --left) result.insert(static_cast<int>(random.between(0, 63)));
  return result;
}

KeptAllocations any_kept(Random& random) {
  KeptAllocations kept;
  for (auto left = random.between(0, 3); left > 0; --left) kept.basis[any_text(random)] = any_text(random);
  for (auto left = random.between(0, 2); left > 0; --left) kept.plugin_resources.insert(any_text(random));
  for (auto left = random.between(0, 2); left > 0; --left) {
    kept.coming[any_text(random)] = core::Instant{core::Duration{random.between(0, 1 << 30)}};
    kept.boot = any_text(random);
  }
  for (auto pods = random.between(0, 3); pods > 0; --pods)
    for (auto containers = random.between(1, 3); containers > 0; --containers) {
      auto& container = kept.allocations[any_text(random)][any_text(random)];
      container.cpus = any_numbers(random);
      for (auto left = random.between(0, 2); left > 0; --left)
        container.memory.push_back({.numa_nodes = any_numbers(random),
                                    .type = any_text(random),
                                    .bytes = random.between(0, std::numeric_limits<std::int64_t>::max())});
      for (auto left = random.between(0, 2); left > 0; --left)
        container.devices[any_text(random)] = {any_text(random), any_text(random)};
      if (random.between(0, 1) == 1)
        container.edits = admission::DeviceEdits{.environment = {{any_text(random), any_text(random)}},
                                                 .cdi_devices = {any_text(random)}};
    }
  return kept;
}

}  // namespace

TEST_CASE("allocations are printed as one line that says what it is") {
  CHECK(print_allocations({}) ==
        "{\"kind\":\"evictd.io/allocations\",\"version\":1,\"checksum\":\"4f3a3ebd39a6426f\","
        "\"content\":{\"basis\":{},\"pods\":{}}}\n");
  CHECK(value_of(parse_allocations(print_allocations(some()))) == some());
}

TEST_CASE("what is no file of allocations is told in a line") {
  const auto text = print_allocations(some());
  CHECK(error_of(parse_allocations("")) == "is not JSON: incomplete JSON");
  CHECK(error_of(parse_allocations(text.substr(0, text.size() / 2))) == "is not JSON: incomplete JSON");
  CHECK(error_of(parse_allocations("[1]")) == "is no file of kind evictd.io/allocations");
  CHECK(error_of(parse_allocations("{\"policyName\":\"static\",\"defaultCpuSet\":\"0-7\"}")) ==
        "is no file of kind evictd.io/allocations");
  CHECK(error_of(parse_allocations(replaced(text, "\"version\":1", "\"version\":2"))) ==
        "has version 2, this evictd reads 1");
  CHECK(error_of(parse_allocations(replaced(text, "\"version\":1,", ""))) == "has version none, this evictd reads 1");
  CHECK(error_of(parse_allocations(replaced(text, "1-2,5", "1-2,6"))) == "is damaged: its checksum is wrong");
  CHECK(error_of(parse_allocations(replaced(text, "\"checksum\"", "\"sum\""))) == "is damaged: its checksum is wrong");
  CHECK(error_of(parse_allocations(std::string(100, '['))).starts_with("is not JSON: "));
}

TEST_CASE("white space between the parts does not matter") {
  auto text = print_allocations(some());
  for (const auto* part : {"\"version\":", "\"content\":", "\"pods\":", "\"cpus\":"})
    text = replaced(text, part, std::string("\n  ") + part + " ");
  CHECK(value_of(parse_allocations(text)) == some());
}

TEST_CASE("property: whatever was printed reads as the same, and no byte can be changed unnoticed") {
  for (const auto seed : seeds(200)) {
    CAPTURE(seed);
    Random random{seed};
    const auto kept = any_kept(random);
    const auto text = print_allocations(kept);
    CHECK(value_of(parse_allocations(text)) == kept);
    auto damaged = text;
    auto& byte = damaged[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(text.size()) - 2))];
    byte = static_cast<char>(byte ^ (1 << random.between(0, 6)));
    const auto read = parse_allocations(damaged);
    if (read) CHECK(*read == kept);
  }
}

}  // namespace evictd::node::allocation_file_test
