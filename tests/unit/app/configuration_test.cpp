#include "app/configuration.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "fixture/tree.hpp"

namespace evictd::app::configuration_test {

using fixture::dir;
using fixture::file;
using fixture::Tree;

TEST_CASE("evictd's own file is absent where nothing has its name; one that cannot be looked at is there") {
  const Tree tree{{file("file", ""), dir("there", {file("agent.yaml", "")})}};
  std::filesystem::create_symlink("loop", tree.path("loop"));
  std::filesystem::create_symlink("nowhere", tree.path("dangling"));
  CHECK_FALSE(find_agent_configuration(tree.path("agent.yaml")));
  CHECK_FALSE(find_agent_configuration(tree.path("missing/agent.yaml")));
  CHECK_FALSE(find_agent_configuration(tree.path("file/agent.yaml")));
  CHECK(find_agent_configuration(tree.path("there/agent.yaml")) == tree.path("there/agent.yaml").native());

  // In the place of a disk that fails, which root cannot be refused by rights either.
  for (const std::string name : {"loop/agent.yaml", "dangling"}) {
    CAPTURE(name);
    const auto found = find_agent_configuration(tree.path(name));
    CHECK(found == tree.path(name).native());
    const auto loaded = load_configuration({.agent = found, .kubelet = tree.path("kubelet.yaml").native()});
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().message.find(tree.path(name).native()) != std::string::npos);
  }
}

}  // namespace evictd::app::configuration_test
