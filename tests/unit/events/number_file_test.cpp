#include "events/number_file.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

#include "api/temporary_directory.hpp"
#include "fixture/mount.hpp"
#include "fixture/result.hpp"
#include "os/checksum.hpp"
#include "support/skip.hpp"

namespace evictd::events::number_file_test {
namespace {

using fixture::error_of;
using fixture::value_of;
using test::TemporaryDirectory;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void replace_content(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

TEST_CASE("a new file has no number, and then the one that was written last, also a lower one") {
  const TemporaryDirectory directory;
  const auto path = directory / "numbers";
  CHECK_FALSE(value_of(NumberFile::open(path)).highest());
  {
    auto file = value_of(NumberFile::open(path));
    for (const std::uint64_t number : {7ULL, 65'543ULL, 12ULL}) REQUIRE(file.write(number));
    CHECK(file.highest() == 12);
  }
  auto file = value_of(NumberFile::open(path));
  CHECK(file.highest() == 12);
  CHECK(file.complaint().empty());
  REQUIRE(file.write(std::numeric_limits<std::uint64_t>::max()));
  CHECK(value_of(NumberFile::open(path)).highest() == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("a number that was lowered is told from one that was not, by whoever opens the file next") {
  const TemporaryDirectory directory;
  const auto path = directory / "numbers";
  auto file = value_of(NumberFile::open(path));
  CHECK(file.lowered_from() == 0);
  struct Step {
    std::uint64_t number;
    std::uint64_t lowered_from;
  };
  for (const auto step : {Step{100, 0}, {7, 100}, {107, 0}, {207, 0}, {207, 0}, {206, 207}, {0, 206}, {300, 0}}) {
    CAPTURE(step.number);
    REQUIRE(file.write(step.number));
    CHECK(file.lowered_from() == step.lowered_from);
    const auto next = value_of(NumberFile::open(path));
    CHECK(next.highest() == step.number);
    CHECK(next.lowered_from() == step.lowered_from);
  }
}

TEST_CASE("a write that is torn at any byte leaves the number before it") {
  const TemporaryDirectory directory;
  const auto path = directory / "numbers";
  auto file = value_of(NumberFile::open(path));
  REQUIRE(file.write(100));
  REQUIRE(file.write(200));
  const auto before = content_of(path);
  REQUIRE(file.write(300));
  const auto after = content_of(path);
  REQUIRE(before.size() == after.size());
  for (std::size_t torn = 0; torn < after.size(); ++torn) {
    if (before[torn] == after[torn]) continue;
    replace_content(path, after.substr(0, torn) + before.substr(torn));
    CHECK(value_of(NumberFile::open(path)).highest() == 200);
  }
  replace_content(path, after);
  CHECK(value_of(NumberFile::open(path)).highest() == 300);
}

TEST_CASE("a file of something else, or of a newer evictd, is set aside") {
  const TemporaryDirectory directory;
  const auto path = directory / "numbers";
  auto newer = std::string("evictdN9") + std::string(5000, 'x');
  for (const auto& content : {std::string("hello"), std::string(9000, '\0'), newer}) {
    replace_content(path, content);
    const auto file = value_of(NumberFile::open(path));
    CHECK_FALSE(file.highest());
    CHECK(file.complaint() == path + ": cannot be read, or is of a newer evictd: it is " + path + ".aside now");
    CHECK(content_of(path + ".aside") == content);
    CHECK(content_of(path).size() == 8192);
  }
}

/// A slot of the first version's.
std::string first_slot(std::uint64_t generation, std::uint64_t number) {
  std::string slot(28, '\0');
  slot.replace(0, 8, "evictdN1");
  os::put_64(slot.data() + 8, generation);
  os::put_64(slot.data() + 16, number);
  os::put_32(slot.data() + 24, os::checksum({slot.data(), 24}));
  return slot;
}

TEST_CASE("the file of an earlier evictd is read, and a torn write leaves its number until there is another") {
  const TemporaryDirectory directory;
  const auto path = directory / "numbers";
  for (const std::uint64_t generation : {6, 7}) {
    CAPTURE(generation);
    std::string before(8192, '\0');
    before.replace(generation % 2 * 4096, 28, first_slot(generation, 700));
    before.replace((generation + 1) % 2 * 4096, 28, first_slot(generation - 1, 600));
    replace_content(path, before);
    {
      auto file = value_of(NumberFile::open(path));
      CHECK(file.highest() == 700);
      CHECK(file.lowered_from() == 0);
      CHECK(file.complaint().empty());
      REQUIRE(file.write(800));
    }
    const auto after = content_of(path);
    CHECK(value_of(NumberFile::open(path)).highest() == 800);
    for (std::size_t torn = 0; torn < after.size(); ++torn) {
      if (before[torn] == after[torn]) continue;
      replace_content(path, after.substr(0, torn) + before.substr(torn));
      CHECK(value_of(NumberFile::open(path)).highest() == 700);
    }
    replace_content(path, after);
    REQUIRE(value_of(NumberFile::open(path)).write(900));
    CHECK(value_of(NumberFile::open(path)).highest() == 900);
  }
}

TEST_CASE("a number that an earlier evictd has lowered is told from one that was not") {
  const TemporaryDirectory directory;
  const auto path = directory / "numbers";
  for (const std::size_t newer : {0, 4096}) {
    std::string slots(8192, '\0');
    slots.replace(newer, 28, first_slot(2, 100));
    slots.replace(4096 - newer, 28, first_slot(1, 200));
    replace_content(path, slots);
    const auto file = value_of(NumberFile::open(path));
    CHECK(file.highest() == 100);
    CHECK(file.lowered_from() == 200);
  }
}

TEST_CASE("a number is written although the disk is full") {
  SKIP_IF(fixture::Mount::impossible());
  const TemporaryDirectory directory;
  const auto mounted = fixture::Mount::tmpfs(directory.path(), "size=256k");
  auto file = value_of(NumberFile::open(directory / "numbers"));
  replace_content(directory / "filler", std::string(1 << 20, 'x'));
  CHECK(file.write(1));
  CHECK(file.write(2));
  CHECK(file.write(3));
  CHECK(value_of(NumberFile::open(directory / "numbers")).highest() == 3);
}

TEST_CASE("where there is no directory the error names the file") {
  const TemporaryDirectory directory;
  CHECK(error_of(NumberFile::open(directory / "none/numbers")) ==
        (directory / "none/numbers") + ": No such file or directory");
}

}  // namespace
}  // namespace evictd::events::number_file_test
