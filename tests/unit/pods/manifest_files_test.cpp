#include "pods/manifest_files.hpp"

#include <doctest/doctest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>

#include <chrono>

#include "config/yaml.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::pods::manifest_files_test {
namespace {

namespace fs = std::filesystem;
using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

std::string manifest(const std::string& name, int priority = 0) {
  return "metadata: {name: " + name + "}\nspec: {priority: " + std::to_string(priority) +
         ", containers: [{name: main}]}\n";
}

ManifestFiles read(const Tree& tree, const ManifestFiles& known = {}) {
  return value_of(read_manifests(tree.path(), "Node1.Lab", known));
}

std::vector<std::string> names(const ManifestFiles& files) {
  std::vector<std::string> names;
  for (const auto& [name, file] : files)
    for (const auto& pod : file.pods) names.push_back(pod->key());
  return names;
}

}  // namespace

TEST_CASE("every file is a manifest but hidden ones and directories, and pods are named after the node") {
  const Tree tree{{file("b.yaml", manifest("web")), file("a.json", R"({"kind": "Pod", "metadata": {"name": "db",
      "namespace": "kube-system"}, "spec": {"containers": [{"name": "main"}]}})"),
                   file("noext", manifest("plain")), file(".hidden.yaml", manifest("hidden")),
                   dir("below", {file("c.yaml", manifest("below"))})}};
  const auto files = read(tree);
  CHECK(names(files) ==
        std::vector<std::string>{"kube-system/db-node1.lab", "default/web-node1.lab", "default/plain-node1.lab"});
  CHECK(value_of(read_manifests(tree.path(), "", {})).at("b.yaml").pods.at(0)->name == "web");
}

TEST_CASE("what is neither a file nor a directory is not opened") {
  const Tree tree;
  REQUIRE(::mkfifo(tree.path("pipe").c_str(), 0600) == 0);
  fs::create_symlink("nowhere", tree.path("dangling"));
  CHECK(read(tree).empty());
}

TEST_CASE("a link is followed, as a mounted ConfigMap has them") {
  const Tree tree{{dir("..data", {file("web.yaml", manifest("web"))})}};
  fs::create_symlink("..data/web.yaml", tree.path("web.yaml"));
  CHECK(names(read(tree)) == std::vector<std::string>{"default/web-node1.lab"});
}

TEST_CASE("a file that is not good any more keeps its pods and is named with its line") {
  const Tree tree{{file("a.yaml", manifest("web", 7)), file("b.yaml", manifest("db"))}};
  const auto good = read(tree);
  tree.write("a.yaml", "metadata: {name: web}\nspec:\n  priority: high\n");
  const auto bad = read(tree, good);
  CHECK(names(bad) == names(good));
  CHECK(bad.at("a.yaml").pods.at(0)->priority == 7);
  REQUIRE(bad.at("a.yaml").error.has_value());
  CHECK(bad.at("a.yaml").error->message.starts_with(tree.path("a.yaml").native() + ":3: spec.priority: "));
  CHECK_FALSE(bad.at("b.yaml").error.has_value());

  const auto still_bad = read(tree, bad);
  CHECK(still_bad.at("a.yaml").error == bad.at("a.yaml").error);
  tree.write("a.yaml", manifest("web", 8));
  const auto good_again = read(tree, still_bad);
  CHECK(good_again.at("a.yaml").pods.at(0)->priority == 8);
  CHECK_FALSE(good_again.at("a.yaml").error.has_value());
}

TEST_CASE("a file that was never good has no pods, one that is gone has none any more") {
  const Tree tree{{file("a.yaml", "spec: ["), file("b.yaml", manifest("db"))}};
  const auto files = read(tree);
  CHECK(files.at("a.yaml").pods.empty());
  CHECK(files.at("a.yaml").error.has_value());
  tree.remove("b.yaml");
  CHECK(names(read(tree, files)).empty());
}

TEST_CASE("a file beyond the size limit is refused, and its earlier pods stay") {
  const Tree tree{{file("a.yaml", manifest("web"))}};
  const auto good = read(tree);
  tree.write("a.yaml", manifest("web") + std::string(config::max_file_size, '#'));
  const auto large = read(tree, good);
  CHECK(names(large) == names(good));
  CHECK(large.at("a.yaml").error->message.find("is larger than 1024 KiB") != std::string::npos);
}

TEST_CASE("what did not change is not read again") {
  const Tree tree{{file("a.yaml", manifest("web"))}};
  fs::last_write_time(tree.path("a.yaml"), fs::file_time_type::clock::now() - std::chrono::minutes(1));
  const auto first = read(tree);
  CHECK(read(tree, first).at("a.yaml").pods.at(0) == first.at("a.yaml").pods.at(0));
  tree.write("a.yaml", manifest("web", 1));
  CHECK(read(tree, first).at("a.yaml").pods.at(0) != first.at("a.yaml").pods.at(0));
}

TEST_CASE("a file that could not be read is read again, though it was not modified") {
  const Tree tree{{file("web.yaml", manifest("web"))}};
  const auto path = tree.path("web.yaml");
  fs::permissions(tree.path(), fs::perms{0755});
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  fs::permissions(path, fs::perms::none);
  const auto own = ::setfsuid(65534);  // of this thread; root may read everything
  const auto unreadable = read(tree);
  ::setfsuid(static_cast<uid_t>(own));
  REQUIRE(unreadable.at("web.yaml").error);
  fs::permissions(path, fs::perms{0644});
  const auto readable = read(tree, unreadable);
  CHECK(names(readable) == std::vector<std::string>{"default/web-node1.lab"});
  CHECK_FALSE(readable.at("web.yaml").error);
}

TEST_CASE("a change is seen even within one tick of the file system's clock") {
  const Tree tree{{file("a.yaml", manifest("web", 0))}};
  auto files = read(tree);
  for (int priority = 1; priority < 10; ++priority) {
    tree.write("a.yaml", manifest("web", priority));
    files = read(tree, files);
    CHECK(files.at("a.yaml").pods.at(0)->priority == priority);
  }
}

TEST_CASE("a directory that cannot be listed is an error, an empty one is not") {
  const Tree tree{{dir("empty")}};
  CHECK(value_of(read_manifests(tree.path("empty"), "n", {})).empty());
  CHECK(error_of(read_manifests(tree.path("none"), "n", {})) ==
        tree.path("none").native() + ": cannot be listed: No such file or directory");
}

}  // namespace evictd::pods::manifest_files_test
