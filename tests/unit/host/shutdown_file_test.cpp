#include "host/shutdown_file.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "fixture/random.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::host::shutdown_file_test {
namespace {

using namespace std::chrono_literals;
using core::ShutdownProgress;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file in a boot of its own.
struct Boot {
  fixture::Tree tree{{fixture::file("boot_id", "11111111-2222-3333-4444-555555555555\n")}};
  std::filesystem::path path = tree.path("evictd") / "shutdown.json";

  [[nodiscard]] ShutdownFile file() const { return ShutdownFile{path, tree.path("boot_id")}; }
  void write(const std::string& text) const {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
};

core::Instant at(core::Duration time) { return core::Instant{time}; }

ShutdownProgress half_way() {
  return {.begun = at(100s + 1ns),
          .group = -5,
          .group_until = at(120s),
          .told = {{"a", at(110s)}, {"b", at(std::chrono::nanoseconds::max())}},
          .ended = {"a"},
          .over = false};
}

TEST_CASE("what was kept is found again in the same boot, and what is no longer needed is not") {
  const Boot boot;
  CHECK_FALSE(boot.file().load().progress.has_value());
  for (const auto& progress : {half_way(), ShutdownProgress{.begun = at(1s)}, ShutdownProgress{.over = true}}) {
    CHECK(boot.file().save(progress).has_value());
    const auto found = boot.file().load();
    CHECK(found.progress == progress);
    CHECK(found.remark.empty());
  }
  CHECK(boot.file().save({}).has_value());
  CHECK_FALSE(std::filesystem::exists(boot.path));
  CHECK(boot.file().save({}).has_value());
}

TEST_CASE("a file of another boot is removed, and so is one where the boot cannot be told") {
  const Boot boot;
  for (const auto* id : {"99999999-2222-3333-4444-555555555555\n", ""}) {
    CHECK(boot.file().save(half_way()).has_value());
    boot.tree.write("boot_id", id);
    const auto found = boot.file().load();
    CHECK_FALSE(found.progress.has_value());
    CHECK(found.remark == boot.path.native() + ": is of an earlier boot, and was removed");
    CHECK_FALSE(std::filesystem::exists(boot.path));
  }
}

TEST_CASE("a file that cannot be understood is set aside with a word on what is wrong") {
  const Boot boot;
  CHECK(boot.file().save(half_way()).has_value());
  const auto whole = text_of(boot.path);
  for (const auto& text : {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"), std::string("{}"),
                           std::string(R"({"version":2})"), std::string(R"({"version":1,"begun":"soon"})"),
                           std::string(R"({"version":1,"color":"red"})"), std::string(100, '\0')}) {
    CAPTURE(text);
    boot.write(text);
    const auto found = boot.file().load();
    CHECK_FALSE(found.progress.has_value());
    CHECK(found.remark.starts_with(boot.path.native() + ": "));
    CHECK(found.remark.ends_with("; it was set aside as " + boot.path.native() + ".aside"));
    CHECK_FALSE(std::filesystem::exists(boot.path));
    CHECK(text_of(boot.path.native() + ".aside") == text);
  }
}

TEST_CASE("property: no cut makes another progress of a file: it is found whole or set aside") {
  for (const auto seed : fixture::seeds(20)) {
    CAPTURE(seed);
    fixture::Random random{seed};
    const Boot boot;
    ShutdownProgress progress{.begun = at(core::Duration{random.magnitude()}),
                              .group_until = at(core::Duration{random.magnitude()}),
                              .over = random.chance(50)};
    if (random.chance(50)) progress.group = static_cast<std::int32_t>(random.between(-1000, 2'000'000'000));
    for (auto left = random.between(0, 5); left > 0; --left) {
      const auto uid = "uid-\"" + std::to_string(random.between(0, 1000)) + ".x y";
      progress.told[uid] = at(core::Duration{random.magnitude()});
      if (random.chance(50)) progress.ended.insert(uid);
    }
    CHECK(boot.file().save(progress).has_value());
    const auto text = text_of(boot.path);
    CHECK(boot.file().load().progress == progress);
    for (int cut = 0; cut < 20; ++cut) {
      // The last two bytes are the brace and the end of the line.
      boot.write(
          text.substr(0, static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(text.size()) - 2))));
      CHECK_FALSE(boot.file().load().progress.has_value());
    }
  }
}

TEST_CASE("a file that cannot be written is an error that names it") {
  const Boot boot;
  boot.write("");
  const ShutdownFile below{boot.path / "below" / "shutdown.json", boot.tree.path("boot_id")};
  CHECK(fixture::error_of(below.save(half_way())).starts_with((boot.path / "below" / "shutdown.json").native()));
}

}  // namespace
}  // namespace evictd::host::shutdown_file_test
